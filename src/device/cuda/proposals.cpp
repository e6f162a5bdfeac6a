// SPDX-License-Identifier: Apache-2.0
#include "kernels/proposals.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class ProposalsKernel final : public OperationKernel<ops::Proposals, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.workspace_bytes = kernels::proposals_workspace_bytes(shape_)};
    }

private:
    void forward() override {
        kernels::proposals(shape_,
                           {.rpn = rpn_outputs(shape_.grid, options_.compute, tensors_.inputs),
                            .proposals = output(),
                            .workspace = tensors_.workspace},
                           context_.stream);
    }

    const kernels::ProposalsShape shape_{.grid = kernels::make_anchor_grid(op_.anchors),
                                         .images = static_cast<int>(op_.batch),
                                         .per_level = static_cast<int>(op_.per_level),
                                         .limit = static_cast<int>(op_.limit),
                                         .nms_iou = ops::rounded_down(op_.nms_iou),
                                         .bounds = {static_cast<float>(op_.anchors.image_height),
                                                    static_cast<float>(op_.anchors.image_width),
                                                    static_cast<float>(op_.minimum_side)}};
};

class DetectionsKernel final : public OperationKernel<ops::Detections, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.workspace_bytes = kernels::detections_workspace_bytes(shape_)};
    }

private:
    void forward() override {
        kernels::detections(shape_,
                            {.logits = input(0),
                             .deltas = input(1),
                             .proposals = input(2),
                             .detections = output(),
                             .workspace = tensors_.workspace},
                            context_.stream);
    }

    const kernels::DetectionsShape shape_{
        .images = static_cast<int>(op_.proposals[0]),
        .regions = static_cast<int>(op_.proposals[1]),
        .classes = static_cast<int>(op_.classes),
        .limit = static_cast<int>(op_.limit),
        .score_threshold = static_cast<float>(op_.score_threshold),
        .nms_iou = ops::rounded_down(op_.nms_iou),
        .bounds = {static_cast<float>(op_.image_height), static_cast<float>(op_.image_width),
                   static_cast<float>(op_.minimum_side)},
        .coder = op_.coder};
};

}  // namespace

HPCAI_BUILD_KERNEL(Proposals)
HPCAI_BUILD_KERNEL(Detections)

}  // namespace hpcai::device::cuda
