// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/reference/naive_ops.hpp>

namespace hpcai::naive {

/// Computes the solution of one problem.
struct Solver {
    const Problem& problem;
    Solution solution;

    const Tensor& x() const { return problem.inputs[0]; }
    bool backward() const { return !problem.output_gradients.empty(); }
    Tensor output_gradient() const { return sum(problem.output_gradients); }

    void operator()(const ops::InputNormalize& op);
    void operator()(const ops::Convolution& op);
    void operator()(const ops::BatchNorm& op);
    void operator()(const ops::DualNorm& op);
    void operator()(const ops::PointwiseNorm& op);
    void operator()(const ops::GroupNorm& op);
    void operator()(const ops::Bias& op);
    void operator()(const ops::UpsampleAdd& op);
    void operator()(const ops::Relu& op);
    void operator()(const ops::Add&);
    void operator()(const ops::MaxPool& op);
    void operator()(const ops::NormPool& op);
    void operator()(const ops::GlobalAveragePool& op);
    void operator()(const ops::Linear& op);
    void operator()(const ops::SoftmaxCrossEntropy& op);
    void operator()(const ops::AnchorTargets& op);
    void operator()(const ops::RpnLoss& op);
    void operator()(const ops::Proposals& op);
    void operator()(const ops::RoiTargets& op);
    void operator()(const ops::RoiAlign& op);
    void operator()(const ops::RoiLoss& op);
    void operator()(const ops::Detections& op);
    void operator()(const ops::CellCrossEntropy& op);
    [[noreturn]] void operator()(const ops::AllGather&) { refuse_shard(); }
    [[noreturn]] void operator()(const ops::ReduceScatter&) { refuse_shard(); }

    /// Computes softmax and gradient of row `row` of the logits (rows, targets.size()). Adds the
    /// cross-entropy with the target distribution, times `weight`, to `loss`.
    void cross_entropy(std::int64_t row, const std::vector<double>& targets, double weight,
                       double& loss);

    [[noreturn]] static void refuse_shard();
};

}  // namespace hpcai::naive
