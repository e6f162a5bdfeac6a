// SPDX-License-Identifier: Apache-2.0
#include "kernels/detections.hpp"

#include "kernels/suppression.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class DetectionsKernel final : public ForwardKernel {
public:
    DetectionsKernel(const kernels::DetectionsShape& shape, const Context& context)
        : ForwardKernel(context, kernels::detections_workspace_bytes(shape)), shape_(shape) {}

    void run(ops::Pass) override {
        kernels::detections(shape_,
                            {.logits = input(0),
                             .deltas = input(1),
                             .proposals = input(2),
                             .detections = output(),
                             .workspace = tensors_.workspace},
                            context_.stream);
    }

private:
    kernels::DetectionsShape shape_;
};

}  // namespace

std::unique_ptr<Kernel> build_detections(const ops::Detections& op, const KernelOptions&,
                                         const Context& context) {
    const kernels::DetectionsShape shape{
        .images = static_cast<int>(op.proposals[0]),
        .regions = static_cast<int>(op.proposals[1]),
        .classes = static_cast<int>(op.classes),
        .limit = static_cast<int>(op.limit),
        .score_threshold = static_cast<float>(op.score_threshold),
        .nms_iou = kernels::rounded_down(op.nms_iou),
        .bounds = {static_cast<float>(op.image_height), static_cast<float>(op.image_width),
                   static_cast<float>(op.minimum_side)},
        .coder = op.coder};
    return std::make_unique<DetectionsKernel>(shape, context);
}

}  // namespace hpcai::device::cuda
