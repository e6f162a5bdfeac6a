// SPDX-License-Identifier: Apache-2.0
#include "kernels/roi_targets.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class RoiTargetsKernel final : public ForwardKernel {
public:
    RoiTargetsKernel(const kernels::RoiTargetsShape& shape, const Context& context)
        : ForwardKernel(context, kernels::roi_targets_workspace_bytes(shape)), shape_(shape) {}

    void run(ops::Pass) override {
        kernels::roi_targets(shape_,
                             {.proposals = input(0),
                              .boxes = input(1),
                              .keys = input<std::int32_t>(2),
                              .targets = output(),
                              .workspace = tensors_.workspace},
                             context_.stream);
    }

private:
    kernels::RoiTargetsShape shape_;
};

}  // namespace

std::unique_ptr<Kernel> build_roi_targets(const ops::RoiTargets& op, const KernelOptions&,
                                          const Context& context) {
    const kernels::RoiTargetsShape shape{
        .images = static_cast<int>(op.boxes[0]),
        .proposals = static_cast<int>(op.proposals[1]),
        .boxes = static_cast<int>(op.boxes[1]),
        .samples = static_cast<int>(op.samples),
        .most_foreground = positive_limit(op.samples, op.positive_share),
        .foreground_iou = static_cast<float>(op.foreground_iou),
        .coder = op.coder};
    return std::make_unique<RoiTargetsKernel>(shape, context);
}

}  // namespace hpcai::device::cuda
