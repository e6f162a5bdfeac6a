// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

struct Build {
    const KernelOptions& options;
    const Context& context;
    std::unique_ptr<Kernel> operator()(const ops::InputNormalize& op) const {
        return build_input_normalize(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Convolution& op) const {
        return op.sums ? refuse(op) : build_convolution(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::BatchNorm& op) const {
        if (op.from_sums) return refuse(op);
        return op.frozen ? build_frozen_norm(op, options, context)
                         : build_batch_norm(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::GroupNorm& op) const {
        return build_group_norm(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Bias& op) const {
        return build_bias(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::UpsampleAdd& op) const {
        return build_upsample_add(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Relu& op) const {
        return build_relu(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Add& op) const {
        return build_add(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::MaxPool& op) const {
        return build_max_pool(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::GlobalAveragePool& op) const {
        return build_global_average_pool(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Linear& op) const {
        return build_linear(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::SoftmaxCrossEntropy& op) const {
        return build_softmax_cross_entropy(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::AnchorTargets& op) const {
        return build_anchor_targets(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::RpnLoss& op) const {
        return build_rpn_loss(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Proposals& op) const {
        return build_proposals(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::RoiTargets& op) const {
        return build_roi_targets(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::RoiAlign& op) const {
        return build_roi_align(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::RoiLoss& op) const {
        return build_roi_loss(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::Detections& op) const {
        return build_detections(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::CellCrossEntropy& op) const {
        return build_cell_cross_entropy(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::AllGather& op) const {
        return build_all_gather(op, options, context);
    }
    std::unique_ptr<Kernel> operator()(const ops::ReduceScatter& op) const {
        return build_reduce_scatter(op, options, context);
    }
    /// What joins convolutions and norms.
    template <typename Other>
    std::unique_ptr<Kernel> operator()(const Other& op) const {
        return refuse(op);
    }

    static std::unique_ptr<Kernel> refuse(const ops::Operation& operation) {
        throw Error(ExitCode::internal,
                    fmt::format("the CPU engine has no {} of this kind", ops::name_of(operation)));
    }
};

}  // namespace

std::unique_ptr<Kernel> build_kernel(const ops::Operation& operation, const KernelOptions& options,
                                     const Context& context) {
    return std::visit(Build{options, context}, operation);
}

}  // namespace hpcai::device::cpu
