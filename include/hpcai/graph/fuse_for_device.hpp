// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// Fuses `graph` for `device`: fuse(), and in training the further fusions that the device accepts.
/// A convolution forms the sums for the statistics of the BatchNorm after it. A BatchNorm with its
/// ReLU becomes part of the convolution that is its only reader. A BatchNorm whose output is only
/// added to that of another BatchNorm becomes part of the latter. Each of these fusions requires
/// BatchNorm statistics of the whole batch.
Graph fuse_for_device(const Graph& graph, device::Device& device, const NetworkOptions& options);

/// See device::Device::accepts.
using Accepts = std::function<bool(const ops::Operation&, const device::KernelOptions&)>;

/// The same, with `accepts` in place of a device's function.
Graph fuse_for_device(const Graph& graph, const Accepts& accepts, const NetworkOptions& options);

}  // namespace hpcai::graph
