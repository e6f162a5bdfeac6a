// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Counters of a node's energy and network traffic.
namespace hpcai::meters {

/// A monotonic counter of this node.
struct Counter {
    std::string name;     // "nvml:GPU-...", "rapl:package-0:dram", "net:eth0:sent"
    std::string unit;     // "J", "B"
    std::string failure;  // why it cannot be read; empty if it can
    /// Returns the value since an arbitrary start. It must be called every few minutes at least,
    /// because hardware counters wrap. Throws Error(data) naming the file or call that fails.
    std::function<double()> read = {};
};

/// Energy of processor packages and their memory, from the kernel's powercap zones below `sysfs`
/// ("/sys"). Omits the zone that contains packages (psys) and all parts of a package but its memory
/// (core, uncore). If no zone is left, returns one counter "rapl" with the reason.
std::vector<Counter> processor_counters(const std::filesystem::path& sysfs);

/// Bytes sent and received by network interfaces and InfiniBand ports below `sysfs`, each byte
/// once. Counts interfaces that have a device. If there are neither such interfaces nor ports (in a
/// container), counts interfaces other than bridges, bonds, tunnels, VLANs and their members. Omits
/// the loopback, and IP over InfiniBand if ports are counted.
std::vector<Counter> interface_counters(const std::filesystem::path& sysfs);

/// Returns whether `sysfs` shows the network interfaces of this process. A mount of sysfs may
/// belong to another network namespace.
bool shows_own_interfaces(const std::filesystem::path& sysfs);

struct NvmlSource {
    std::string library = "libnvidia-ml.so.1";
    std::function<double()> seconds;  // a monotonic clock
};

/// Energy of the GPUs with these UUIDs. "nvml:<UUID>" is the GPU's own counter; without one,
/// "nvml-power:<UUID>" integrates its power between reads by the trapezoidal rule. If the library
/// cannot be used, returns one counter "nvml" with the reason.
std::vector<Counter> gpu_counters(const NvmlSource& source, std::span<const std::string> uuids);

}  // namespace hpcai::meters
