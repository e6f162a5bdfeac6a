// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
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

/// Returns the bytes of host memory that the processes of this control group may use together: the
/// host's, or the smallest limit of the group and its parents (cgroups(7), versions 1 and 2).
std::int64_t host_memory_bytes(const std::filesystem::path& root = "/");

/// Resets the peak to the current resident memory, if the system allows it.
void reset_peak_resident_bytes();

}  // namespace hpcai
