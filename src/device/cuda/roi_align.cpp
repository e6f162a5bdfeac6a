// SPDX-License-Identifier: Apache-2.0
#include "kernels/roi_align.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cuda {
namespace {

kernels::RoiAlignShape shape_of(const ops::RoiAlign& op, DType compute) {
    ensure(op.pyramid.size() == kernels::RoiAlignShape::kLevels,
           "the CUDA engine needs a pyramid of 4 levels, not {}", op.pyramid.size());
    kernels::RoiAlignShape shape{
        .dtype = compute,
        .images = static_cast<int>(op.regions[0]),
        .regions = static_cast<int>(op.regions[1]),
        .region_columns = static_cast<int>(op.regions[2]),
        .channels = static_cast<int>(op.pyramid[0][3]),
        .stored_channels = static_cast<int>(stored_channels(op.pyramid[0][3])),
        .pooled = static_cast<int>(op.pooled),
        .sampling_ratio = static_cast<int>(op.sampling_ratio)};
    for (std::size_t level = 0; level < op.pyramid.size(); ++level) {
        ensure(op.pyramid[level][0] == op.regions[0] && op.pyramid[level][3] == op.pyramid[0][3],
               "level {} must have the images of regions {} and the channels of level {}",
               to_string(op.pyramid[level]), to_string(op.regions), to_string(op.pyramid[0]));
        shape.height[level] = static_cast<int>(op.pyramid[level][1]);
        shape.width[level] = static_cast<int>(op.pyramid[level][2]);
    }
    return shape;
}

/// Saved: the bin grid of each region.
class RoiAlignKernel final : public OperationKernel<ops::RoiAlign, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!trains()) return {};
        const auto regions =
            static_cast<std::size_t>(shape_.images) * static_cast<std::size_t>(shape_.regions);
        return {.saved_bytes = regions * sizeof(kernels::BinGrid)};
    }

private:
    static constexpr auto kLevels = kernels::RoiAlignShape::kLevels;

    kernels::BinGrid* grids() const {
        return trains() ? static_cast<kernels::BinGrid*>(tensors_.saved) : nullptr;
    }

    void forward() override {
        kernels::RoiAlignArguments arguments{
            .regions = input(kLevels), .output = tensors_.output, .grids = grids()};
        std::copy_n(tensors_.inputs.begin(), kLevels, arguments.pyramid);
        kernels::roi_align(shape_, arguments, context_.stream);
    }
    void input_gradient() override {
        kernels::RoiAlignGradientArguments arguments{.grids = grids(), .dy = output_gradient()};
        std::copy_n(tensors_.input_gradients.begin(), kLevels, arguments.dx);
        kernels::roi_align_gradient(shape_, arguments, context_.stream);
    }

    const kernels::RoiAlignShape shape_ = shape_of(op_, options_.compute);
};

}  // namespace

HPCAI_BUILD_KERNEL(RoiAlign)

}  // namespace hpcai::device::cuda
