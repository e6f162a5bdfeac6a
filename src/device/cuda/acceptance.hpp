// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "context.hpp"
#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// Median seconds of one forward and one backward pass through `operations` in temporary memory.
/// Supports Convolution, BatchNorm, NormConvolution and DualNorm. Empty when a pass fails, for
/// example for lack of memory. Both functions throw when the device is unusable afterwards.
std::optional<double> seconds_of(const std::vector<ops::Operation>& operations,
                                 const KernelOptions& options, const Context& context);

/// Returns whether one forward and one backward pass through `operations` succeed.
bool can_run(const std::vector<ops::Operation>& operations, const KernelOptions& options,
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
    bool accepts(const ops::Convolution& op, const KernelOptions& options);
    bool accepts(const ops::BatchNorm& op, const KernelOptions& options);
    bool accepts(const ops::NormConvolution& op, const KernelOptions& options);
    bool accepts(const ops::DualNorm& op, const KernelOptions& options);
    bool accepts(const ops::NormPool& op, const KernelOptions& options);
    template <typename Other>
    bool accepts(const Other&, const KernelOptions&) {
        return false;
    }

    struct Decision {
        bool fused = false;
        bool is_final = true;  // false if a trial failed: later runs decide again
    };
    /// Returns an earlier decision, else that of `compare`; false if cuDNN has no plan for a pass.
    bool decide(const std::string& kind, const ConvolutionShape& shape,
                std::initializer_list<ConvolutionPass> passes,
                const std::function<Decision()>& compare);
    Decision is_faster(const std::vector<ops::Operation>& fused,
                       const std::vector<ops::Operation>& separate, const KernelOptions& options);

    const Context& context_;
    std::map<std::string, bool> known_;  // by kind and shape, because a trial is slow
};

}  // namespace hpcai::device::cuda
