// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace hpcai {

/// A process of this host. Numbers are used again, but not with the same begin.
struct ProcessId {
    std::int64_t number = 0;
    std::int64_t start_ticks = 0;  // since the host's start, proc(5)
    bool operator==(const ProcessId&) const = default;
};

ProcessId this_process();

/// Whether such a process is there and has not ended. Also false where /proc does not show it, as
/// in another container.
bool is_running(const ProcessId& process);

}  // namespace hpcai
