// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace hpcai::data::climate {

enum class TrialResult : std::uint8_t { survived, crashed, too_slow };

/// Runs `action` in a process of its own that prints nothing, and waits for it. It survived when it
/// said so itself, also of an action that throws; too_slow after `seconds`, or crashed where
/// SIGCHLD is ignored. Throws Error(internal) when no process can be started.
TrialResult try_apart(const std::function<void()>& action, unsigned seconds);

}  // namespace hpcai::data::climate
