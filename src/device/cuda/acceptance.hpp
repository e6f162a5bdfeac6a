// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "context.hpp"
#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// Times one forward and one backward pass through a convolution and a BatchNorm with ReLU, in
/// temporary memory. The BatchNorm uses the convolution's sums if op.sums. Returns seconds: with
/// autotune the median of five runs after an untimed one, else the time of one run. Empty if a pass
/// fails, for example for lack of memory. Throws if the device is unusable afterwards.
std::optional<double> seconds_of(const ops::Convolution& op, const KernelOptions& options,
                                 const Context& context);

/// Decides whether a network uses a fused operation; see Device::accepts. Fused operations need
/// training and multiples of 8 channels; norms need statistics of the whole batch, poolings windows
/// of 3 x 3 with stride 2 and padding 1. A convolution that computes sums also needs a cuDNN plan,
/// which exists in fp16 only, and a successful trial (seconds_of()) if the context has a device.
/// With autotune it must be faster than the convolution without sums, both with their fastest
/// plans; Context::plans stores the decision. A deterministic device makes no trial. An Acceptance
/// returns the same decision for every call with the same operation.
class Acceptance {
public:
    explicit Acceptance(const Context& context) : context_(context) {}
    bool operator()(const ops::Operation& operation, const KernelOptions& options);

private:
    /// Whether the network uses `op`, a convolution that computes sums.
    bool accepts_sums(const ops::Convolution& op, const KernelOptions& options);

    const Context& context_;
    std::map<std::string, bool> known_;  // decisions by shape, because a trial is slow
};

}  // namespace hpcai::device::cuda
