// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// What a network of `graph` is to be built of on `device`: fuse(), and in training whatever else
/// the device accepts. A convolution forms the sums that the BatchNorm behind it takes its
/// statistics from; a BatchNorm with its ReLU becomes part of the convolution that alone reads it;
/// a BatchNorm that is only added to another one becomes part of that. All this needs statistics
/// of the whole batch.
Graph fuse_for(const Graph& graph, device::Device& device, const NetworkOptions& options);

/// See device::Device::accepts.
using Accepts = std::function<bool(const ops::Operation&, const device::KernelOptions&)>;

/// The same for any device that accepts so.
Graph fuse_for(const Graph& graph, const Accepts& accepts, const NetworkOptions& options);

}  // namespace hpcai::graph
