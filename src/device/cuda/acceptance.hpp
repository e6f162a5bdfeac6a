// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "context.hpp"
#include "cudnn_graphs.hpp"

namespace hpcai::device::cuda {

/// Operations, each of which reads the output of the previous one.
using Chain = std::vector<ops::Operation>;

/// Times one forward and one backward pass through a chain of convolutions, BatchNorms and
/// PointwiseNorms, in temporary memory. Returns seconds: with autotune the median of five runs
/// after an untimed one, else the time of one run. Empty if a pass fails, for example for lack of
/// memory. Throws if the device is unusable afterwards.
std::optional<double> seconds_of(const Chain& chain, const KernelOptions& options,
                                 const Context& context);

/// Decides whether a network uses a fused operation; see Device::accepts. It requires:
/// - of all operations: training and a multiple of 8 output channels
/// - of norms: statistics of the whole batch
/// - of poolings: windows of 3 x 3 with stride 2 and padding 1
/// - of convolutions that compute sums: a cuDNN plan, which exists in f16 only
/// - of a PointwiseNorm: f16 or bf16; a gradient of the input; no padding; both an addition and a
///   ReLU, or neither; a multiple of 8 input channels, and at most 256 if trials are not timed; a
///   multiple of 128 output channels, and at least twice as many as input channels
/// The last two kinds also need a successful trial (seconds_of()) if the context has a device. With
/// autotune they must be faster than separate operations, all with their fastest plans;
/// Context::plans stores the decision. Without autotune, a deterministic device makes no trial. An
/// Acceptance returns the same decision for every call with the same operation.
class Acceptance {
public:
    explicit Acceptance(const Context& context) : context_(context) {}
    bool operator()(const ops::Operation& operation, const KernelOptions& options);

private:
    bool accepts_sums(const ops::Convolution& op, const KernelOptions& options);
    bool is_timed() const { return context_.has_device() && context_.autotune; }
    bool accepts_pointwise(const ops::PointwiseNorm& op, const KernelOptions& options);
    /// Returns the earlier decision with this key, or that of the plan cache; else decides.
    template <typename IsPossible, typename Compare>
    bool decide(const std::string& key, const IsPossible& is_possible, const Compare& compare);

    const Context& context_;
    std::map<std::string, bool> known_;  // decisions by key, because a trial is slow
};

}  // namespace hpcai::device::cuda
