// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace hpcai {

/// Identifies a process of this host. A PID may be reused, but not with the same start time.
struct ProcessId {
    std::int64_t number = 0;       // PID
    std::int64_t start_ticks = 0;  // clock ticks from boot to its start, proc(5)
    std::uint64_t space = 0;       // PID namespace of `number`; each container has its own
    bool operator==(const ProcessId&) const = default;
};

ProcessId this_process();

/// Returns true if the process is known to run. It must have the caller's PID namespace.
bool is_running(const ProcessId& process);

/// Returns true if the process is known to have ended. For a process of another PID namespace, such
/// as another container's, both this and is_running() return false.
bool has_ended(const ProcessId& process);

/// Returns true if the process runs but is stopped, for example by SIGSTOP.
bool is_stopped(const ProcessId& process);

/// Returns the peak resident host memory of this process in bytes (VmHWM of /proc/self/status);
/// nothing if the system does not report it. Shared pages count in each process.
std::optional<double> peak_resident_bytes();

/// Resets the peak to the current resident memory, if the system allows it.
void reset_peak_resident_bytes();

}  // namespace hpcai
