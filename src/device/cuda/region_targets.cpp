// SPDX-License-Identifier: Apache-2.0
#include "kernels/region_targets.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class AnchorTargetsKernel final : public OperationKernel<ops::AnchorTargets, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.workspace_bytes = kernels::anchor_targets_workspace_bytes(shape_)};
    }

private:
    void forward() override {
        kernels::anchor_targets(shape_,
                                {.boxes = input(0),
                                 .keys = input<std::int32_t>(1),
                                 .targets = output(),
                                 .workspace = tensors_.workspace},
                                context_.stream);
    }

    const kernels::AnchorTargetsShape shape_{
        .grid = kernels::make_anchor_grid(op_.anchors),
        .images = static_cast<int>(op_.boxes[0]),
        .boxes = static_cast<int>(op_.boxes[1]),
        .samples = static_cast<int>(op_.samples),
        .max_positive = static_cast<int>(ops::positive_limit(op_.samples, op_.positive_share)),
        .foreground_iou = static_cast<float>(op_.foreground_iou),
        .background_iou = static_cast<float>(op_.background_iou)};
};

class RoiTargetsKernel final : public OperationKernel<ops::RoiTargets, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.workspace_bytes = kernels::roi_targets_workspace_bytes(shape_)};
    }

private:
    void forward() override {
        kernels::roi_targets(shape_,
                             {.proposals = input(0),
                              .boxes = input(1),
                              .keys = input<std::int32_t>(2),
                              .targets = output(),
                              .workspace = tensors_.workspace},
                             context_.stream);
    }

    const kernels::RoiTargetsShape shape_{
        .images = static_cast<int>(op_.boxes[0]),
        .proposals = static_cast<int>(op_.proposals[1]),
        .boxes = static_cast<int>(op_.boxes[1]),
        .samples = static_cast<int>(op_.samples),
        .max_foreground = static_cast<int>(ops::positive_limit(op_.samples, op_.positive_share)),
        .foreground_iou = static_cast<float>(op_.foreground_iou),
        .coder = op_.coder};
};

}  // namespace

HPCAI_BUILD_KERNEL(AnchorTargets)
HPCAI_BUILD_KERNEL(RoiTargets)

}  // namespace hpcai::device::cuda
