// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>

namespace hpcai::data::climate {

enum class TrialResult : std::uint8_t { survived, crashed, too_slow };

/// Runs `action` in a separate process without output, and waits for it. Returns survived when
/// `action` returned or threw, too_slow after `seconds`, and crashed otherwise. If SIGCHLD is
/// ignored, too_slow is reported as crashed. Throws Error(internal) when no process can be started.
TrialResult try_apart(const std::function<void()>& action, unsigned seconds);

}  // namespace hpcai::data::climate
