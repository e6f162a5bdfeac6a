// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace hpcai {

/// Identifies a process of this host. A PID may be reused, but not with the same start time.
struct ProcessId {
    std::int64_t pid = 0;
    std::int64_t start_ticks = 0;     // clock ticks from boot to the start of the process, proc(5)
    std::uint64_t pid_namespace = 0;  // inode; each container has its own PID namespace
    bool operator==(const ProcessId&) const = default;
};

ProcessId this_process();

/// Returns true if the process is known to run, perhaps stopped; false for another PID namespace.
bool is_alive(const ProcessId& process);

/// Returns true if the process is known to have ended; false for another PID namespace, such as
/// that of another container.
bool has_ended(const ProcessId& process);

/// Returns true if the process runs but is stopped, for example by SIGSTOP.
bool is_stopped(const ProcessId& process);

/// Returns the peak resident host memory of this process in bytes (VmHWM of /proc/self/status);
/// nothing if the system does not report it. Shared pages count in each process.
std::optional<double> peak_resident_bytes();

/// Resets the peak to the current resident memory, if the system allows it.
void reset_peak_resident_bytes();

}  // namespace hpcai
