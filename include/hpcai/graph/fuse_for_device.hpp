// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/graph/network.hpp>

namespace hpcai::graph {

/// Applies fuse() and, for training, further fusions that `device` accepts. A convolution computes
/// the sums for the statistics of the BatchNorm after it. A BatchNorm whose output is only added to
/// that of another BatchNorm is fused into the other. A BatchNorm with a ReLU is fused into the
/// MaxPool that is its only reader. A 1 x 1 convolution of stride 1 is fused into the BatchNorm
/// after it, if the output of this BatchNorm is added to another value. All these fusions require
/// that the BatchNorm has its statistics over the whole batch.
Graph fuse_for_device(const Graph& graph, device::Device& device, const NetworkOptions& options);

/// Returns whether to use a fused operation; see device::Device::accepts().
using Accepts = std::function<bool(const ops::Operation&, const device::KernelOptions&)>;

/// Like fuse_for_device() with a device, but calls `accepts` instead of device.accepts().
Graph fuse_for_device(const Graph& graph, const Accepts& accepts, const NetworkOptions& options);

}  // namespace hpcai::graph
