// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace hpcai {

/// Identifies a process of this host. A PID may be reused, but not with the same start time.
struct ProcessId {
    std::int64_t pid = 0;
    std::int64_t start_ticks = 0;     // clock ticks from boot to the start of the process, proc(5)
    std::uint64_t pid_namespace = 0;  // its inode; a container may have its own namespace
    bool operator==(const ProcessId&) const = default;
};

ProcessId this_process();

enum class ProcessState {
    unknown,  // in another PID namespace, such as that of another container, or not readable
    running,
    stopped,  // for example by SIGSTOP
    ended,
};
ProcessState state_of(const ProcessId& process);

/// Returns the peak resident host memory of this process in bytes (VmHWM of /proc/self/status);
/// nothing if the system does not report it. Shared pages count in each process.
std::optional<double> peak_resident_bytes();

/// Resets the peak to the current resident memory, if the system allows it.
void reset_peak_resident_bytes();

}  // namespace hpcai
