// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hpcai::config {

/// A link between two ranks: a message takes latency + bytes / bandwidth.
struct Link {
    double latency_seconds = 0;
    double bytes_per_second = 0;
};

/// The devices and the network of a machine, as its owner or vendor describes them.
struct Machine {
    std::string name;                        // of the device
    std::vector<std::string> figures;        // the entries of each section, for display
    std::map<std::string, double> device;    // values in SI units by key: "memory_gb" in bytes
    std::optional<Link> within_node;         // the bandwidth is that of one rank
    std::optional<Link> between_nodes;       // the ranks of a node share the bandwidth
    std::optional<double> overlapped_share;  // share of all-reduce time that overlaps computation

    /// Returns the value of a key of `device`; empty if the file does not have it.
    std::optional<double> device_value(const std::string& key) const;
};

/// Reads the YAML text of a machine; `file_name` is for messages. Every key is optional:
///
///   device:        {name: A GPU, source: its data sheet, gpus_per_node: 8, memory_gb: 80,
///                   memory_gb_per_second: 2039, mixed_tflops: 312, mixed_training_tflops: 60}
///   within_node:   {latency_us: 5, gb_per_second: 20}
///   between_nodes: {latency_us: 2, gb_per_second: 12.5}
///   overlap:       {overlapped_share: 0.8}
///
/// A GB is 10^9 bytes. `device` is one of `gpus_per_node` GPUs or, with `cores_per_node`, all
/// processors of a node. mixed_tflops is the peak in precision mixed; mixed_training_tflops is the
/// rate of training, by ledger table3. Throws Error(usage) with file, line and column for other
/// keys, numbers out of range, a latency without a bandwidth, an empty text, and YAML with a syntax
/// that config::parse rejects.
Machine read_machine(const std::string& yaml, const std::string& file_name);

/// Returns the files configs/machines/<name>.yaml, by name, in the installation, bundle or source
/// tree of the program to whose file `program` links. Skips folders that cannot be read.
std::map<std::string, std::filesystem::path> shipped_machines(
    const std::filesystem::path& program = "/proc/self/exe");

}  // namespace hpcai::config
