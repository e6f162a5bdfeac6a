// SPDX-License-Identifier: Apache-2.0
#include "kernels/roi_align.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cuda {
namespace {

/// Saved: where the bins of each region lie.
class RoiAlignKernel final : public Kernel {
public:
    RoiAlignKernel(const kernels::RoiAlignShape& shape, Mode mode, const Context& context)
        : context_(context), mode_(mode), shape_(shape) {}

    KernelMemory memory() const override {
        if (mode_ == Mode::inference) return {};
        const auto regions =
            static_cast<std::size_t>(shape_.images) * static_cast<std::size_t>(shape_.regions);
        return {regions * sizeof(kernels::RoiPlace), 0, 0};
    }
    std::vector<ops::Pass> passes() const override {
        if (mode_ == Mode::inference) return {ops::Pass::forward};
        return {ops::Pass::forward, ops::Pass::input_gradient};
    }
    void bind(const KernelTensors& tensors) override {
        constexpr auto kLevels = kernels::RoiAlignShape::kLevels;
        forward_ = {.regions = static_cast<const float*>(tensors.inputs[kLevels]),
                    .output = tensors.output};
        std::copy_n(tensors.inputs.begin(), kLevels, forward_.pyramid);
        if (mode_ == Mode::inference) return;
        forward_.places = static_cast<kernels::RoiPlace*>(tensors.saved);
        backward_ = {.places = forward_.places, .dy = tensors.output_gradients[0]};
        std::copy_n(tensors.input_gradients.begin(), kLevels, backward_.dx);
    }

    void run(ops::Pass pass) override {
        if (pass == ops::Pass::forward) {
            kernels::roi_align(shape_, forward_, context_.stream);
        } else {
            kernels::roi_align_gradient(shape_, backward_, context_.stream);
        }
    }

private:
    const Context& context_;
    Mode mode_;
    kernels::RoiAlignShape shape_;
    kernels::RoiAlignArguments forward_;
    kernels::RoiAlignGradientArguments backward_;
};

}  // namespace

std::unique_ptr<Kernel> build_roi_align(const ops::RoiAlign& op, const KernelOptions& options,
                                        const Context& context) {
    ensure(op.pyramid.size() == kernels::RoiAlignShape::kLevels, "a pyramid of {} levels",
           op.pyramid.size());
    kernels::RoiAlignShape shape{
        .dtype = options.compute,
        .images = static_cast<int>(op.regions[0]),
        .regions = static_cast<int>(op.regions[1]),
        .region_columns = static_cast<int>(op.regions[2]),
        .channels = static_cast<int>(op.pyramid[0][3]),
        .stored_channels = static_cast<int>(stored_channels(op.pyramid[0][3])),
        .pooled = static_cast<int>(op.pooled),
        .sampling_ratio = static_cast<int>(op.sampling_ratio)};
    for (std::size_t level = 0; level < op.pyramid.size(); ++level) {
        ensure(op.pyramid[level][0] == op.regions[0] && op.pyramid[level][3] == op.pyramid[0][3],
               "levels {} and {}", to_string(op.pyramid[0]), to_string(op.pyramid[level]));
        shape.height[level] = static_cast<int>(op.pyramid[level][1]);
        shape.width[level] = static_cast<int>(op.pyramid[level][2]);
    }
    return std::make_unique<RoiAlignKernel>(shape, options.mode, context);
}

}  // namespace hpcai::device::cuda
