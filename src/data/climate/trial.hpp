// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

namespace hpcai::data::climate {

/// Runs `action` in a process of its own that prints nothing, and waits for it. False when it
/// crashed or took longer than `seconds`; what it throws counts as survived.
bool survives(const std::function<void()>& action, unsigned seconds);

}  // namespace hpcai::data::climate
