// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hpcai::config {

/// A link between two ranks: a message takes latency + bytes / bandwidth.
struct Link {
    double latency_seconds = 0;
    double bytes_per_second = 0;
};

/// The network of a machine, as its owner describes it.
struct Interconnect {
    Link within_node;    // the bandwidth is that of one rank
    Link between_nodes;  // the ranks of a node share the bandwidth
    /// Share of the all-reduce time that overlaps with the backward pass.
    std::optional<double> overlapped_share;
};

/// Reads the YAML text of a description; `file_name` is for messages:
///
///   within_node:   {latency_us: 5, gb_per_second: 20}
///   between_nodes: {latency_us: 2, gb_per_second: 12.5}
///   overlap:       {overlapped_share: 0.8}                     # optional
///
/// A GB is 10^9 bytes. Throws Error(usage) with file, line and column for missing keys, numbers out
/// of range, and everything that config::parse rejects.
Interconnect read_interconnect(const std::string& yaml, const std::string& file_name);

}  // namespace hpcai::config
