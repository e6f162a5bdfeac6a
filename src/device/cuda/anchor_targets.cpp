// SPDX-License-Identifier: Apache-2.0
#include "kernels/anchor_targets.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class AnchorTargetsKernel final : public ForwardKernel {
public:
    AnchorTargetsKernel(const kernels::AnchorTargetsShape& shape, const Context& context)
        : ForwardKernel(context, kernels::anchor_targets_workspace_bytes(shape)), shape_(shape) {}

    void run(ops::Pass) override {
        kernels::anchor_targets(shape_,
                                {.boxes = input(0),
                                 .keys = input<std::int32_t>(1),
                                 .targets = output(),
                                 .workspace = tensors_.workspace},
                                context_.stream);
    }

private:
    kernels::AnchorTargetsShape shape_;
};

}  // namespace

std::unique_ptr<Kernel> build_anchor_targets(const ops::AnchorTargets& op, const KernelOptions&,
                                             const Context& context) {
    const kernels::AnchorTargetsShape shape{
        .grid = kernels::make_anchor_grid(op.anchors),
        .images = static_cast<int>(op.boxes[0]),
        .boxes = static_cast<int>(op.boxes[1]),
        .samples = static_cast<int>(op.samples),
        .most_positive = positive_limit(op.samples, op.positive_share),
        .foreground_iou = static_cast<float>(op.foreground_iou),
        .background_iou = static_cast<float>(op.background_iou)};
    return std::make_unique<AnchorTargetsKernel>(shape, context);
}

}  // namespace hpcai::device::cuda
