// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Counters of the energy that a node takes and of the bytes that it sends.
namespace hpcai::meters {

/// A number of this node that only grows.
struct Counter {
    std::string name;     // "nvml:GPU-...", "rapl:package-0:dram", "net:eth0:sent"
    std::string unit;     // "J", "B"
    std::string failure;  // why it cannot be read; empty: it can
    /// Its value since a beginning of its own. To be called every few minutes at least, or what
    /// wraps around is lost. Throws Error(data) naming the file or call that fails.
    std::function<double()> read = {};
};

/// Energy of the processors' packages and of the memory at them, by the kernel's powercap zones
/// below `sysfs` ("/sys"). Other zones are parts of these or contain them. Where there is no such
/// zone, one counter "rapl" that says why.
std::vector<Counter> processor_counters(const std::filesystem::path& sysfs);

/// Bytes sent and received by the network interfaces and InfiniBand ports below `sysfs`, each byte
/// once: of interfaces those with a device of their own; where there is none, as in a container,
/// those that neither lie upon others nor belong to one. The loopback is left out, and IP over
/// InfiniBand where ports are counted.
std::vector<Counter> interface_counters(const std::filesystem::path& sysfs);

/// Whether what lies below `sysfs` shows the network interfaces of this process: a mount may belong
/// to another network namespace.
bool shows_own_interfaces(const std::filesystem::path& sysfs);

struct NvmlSource {
    std::string library = "libnvidia-ml.so.1";
    std::function<double()> seconds;  // a clock that never steps back
};

/// Energy of the GPUs with these UUIDs: "nvml:<UUID>" by the GPU's own counter or, where it has
/// none, "nvml-power:<UUID>", trapezoids over its power at each read. Where the library cannot be
/// used, one counter "nvml" that says why.
std::vector<Counter> gpu_counters(const NvmlSource& source, std::span<const std::string> uuids);

}  // namespace hpcai::meters
