// SPDX-License-Identifier: Apache-2.0
#include "kernels/proposals.hpp"

#include "kernels/suppression.hpp"

#include "detection.hpp"

namespace hpcai::device::cuda {
namespace {

class ProposalsKernel final : public ForwardKernel {
public:
    ProposalsKernel(const kernels::ProposalsShape& shape, DType compute, const Context& context)
        : ForwardKernel(context, kernels::proposals_workspace_bytes(shape)),
          shape_(shape),
          compute_(compute) {}

    void run(ops::Pass) override {
        kernels::proposals(shape_,
                           {.numbers = anchor_numbers(shape_.grid, compute_, tensors_.inputs),
                            .proposals = output(),
                            .workspace = tensors_.workspace},
                           context_.stream);
    }

private:
    kernels::ProposalsShape shape_;
    DType compute_;
};

}  // namespace

std::unique_ptr<Kernel> build_proposals(const ops::Proposals& op, const KernelOptions& options,
                                        const Context& context) {
    const kernels::ProposalsShape shape{.grid = kernels::make_anchor_grid(op.anchors),
                                        .images = static_cast<int>(op.batch),
                                        .per_level = static_cast<int>(op.per_level),
                                        .limit = static_cast<int>(op.limit),
                                        .nms_iou = kernels::rounded_down(op.nms_iou),
                                        .bounds = {static_cast<float>(op.anchors.image_height),
                                                   static_cast<float>(op.anchors.image_width),
                                                   static_cast<float>(op.minimum_side)}};
    return std::make_unique<ProposalsKernel>(shape, options.compute, context);
}

}  // namespace hpcai::device::cuda
