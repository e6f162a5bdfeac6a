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
    /// Returns the value since an arbitrary start. Must be called at least every few minutes,
    /// because hardware counters wrap. Throws Error(data) with the reason of a failure.
    std::function<double()> read = {};
};

/// Returns the energy counters of processor packages and their memory, from the powercap zones
/// below `sysfs` ("/sys"). Omits the zone that contains packages (psys) and zones inside a package
/// (core, uncore) except memory. Without a zone, returns one counter "rapl" with the reason.
std::vector<Counter> processor_counters(const std::filesystem::path& sysfs);

/// Returns counters of the bytes that network interfaces and InfiniBand ports below `sysfs` send
/// and receive, each byte once. Includes interfaces of hardware devices. Without such interfaces
/// and ports, as in a container, includes all except bridges, bonds, tunnels, VLANs and their
/// members. Omits the loopback, and IP over InfiniBand if there are ports.
std::vector<Counter> interface_counters(const std::filesystem::path& sysfs);

/// Returns whether `sysfs` shows the network interfaces of this process. A mount of sysfs may
/// belong to another network namespace.
bool shows_own_interfaces(const std::filesystem::path& sysfs);

struct NvmlSource {
    std::string library = "libnvidia-ml.so.1";
    std::function<double()> seconds;  // a monotonic clock
};

/// Returns the energy counters of the GPUs with these UUIDs: "nvml:<UUID>", the counter of the GPU,
/// or, if it has none, "nvml-power:<UUID>", its power integrated between reads by the trapezoidal
/// rule. Empty without UUIDs. If the library cannot be used, one counter "nvml" has the reason.
std::vector<Counter> gpu_counters(const NvmlSource& source, std::span<const std::string> uuids);

}  // namespace hpcai::meters
