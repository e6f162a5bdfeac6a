// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "context.hpp"
#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// Seconds of one forward and one backward pass through a convolution and the BatchNorm and ReLU
/// after it, which uses the sums if there are any, in temporary memory: with autotune the median of
/// five runs after the first, else that of the first. Empty when a pass fails, for example for lack
/// of memory. Throws when the device is unusable afterwards.
std::optional<double> seconds_of(const ops::Convolution& op, const KernelOptions& options,
                                 const Context& context);

/// Decides whether a network uses a fused operation; see Device::accepts. Fused operations need
/// training and multiples of 8 channels; norms need statistics of the whole batch, poolings windows
/// of 3 x 3 with stride 2 and padding 1. Convolutions also need cuDNN plans, which exist in fp16
/// only, and a successful trial if the context has a device. With autotune they must take less time
/// than the separate operations, both with their fastest plans; Context::plans stores the result. A
/// deterministic device makes no trial. An Acceptance gives the same answer each time it is asked
/// about an operation.
class Acceptance {
public:
    explicit Acceptance(const Context& context) : context_(context) {}
    bool operator()(const ops::Operation& operation, const KernelOptions& options);

private:
    /// Whether the convolution `op` is to compute sums.
    bool accepts_sums(const ops::Convolution& op, const KernelOptions& options);

    const Context& context_;
    std::map<std::string, bool> known_;  // by shape, because a trial is slow
};

}  // namespace hpcai::device::cuda
