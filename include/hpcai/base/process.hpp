// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace hpcai {

/// A process of this host. Numbers are used again, but not with the same begin.
struct ProcessId {
    std::int64_t number = 0;
    std::int64_t start_ticks = 0;  // since the host's start, proc(5)
    std::uint64_t space = 0;       // in which the number means something: containers have their own
    bool operator==(const ProcessId&) const = default;
};

ProcessId this_process();

/// Whether such a process of this one's space is known to be there and not to have ended.
bool is_running(const ProcessId& process);

/// Whether it is known to have ended. Where nothing can be known, as of another container, neither
/// this nor is_running.
bool has_ended(const ProcessId& process);

/// Whether it runs but has been stopped, as by SIGSTOP.
bool is_stopped(const ProcessId& process);

}  // namespace hpcai
