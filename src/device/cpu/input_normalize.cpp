// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>

#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

class InputNormalizeKernel final : public OperationKernel<ops::InputNormalize, Context> {
public:
    InputNormalizeKernel(const ops::InputNormalize& op, const KernelOptions& options,
                         const Context& context)
        : OperationKernel(op, options, context),
          scale_(static_cast<std::size_t>(op.input[3]), 1.0f),
          shift_(static_cast<std::size_t>(op.input[3]), 0.0f) {
        ensure(op.dtype != DType::s32, "images of type {} are not supported", name_of(op.dtype));
        if (op.dtype != DType::u8) return;
        ensure(op.mean.size() == scale_.size() && op.standard_deviation.size() == scale_.size(),
               "{} means and {} deviations do not match {} channels", op.mean.size(),
               op.standard_deviation.size(), scale_.size());
        for (std::size_t channel = 0; channel < scale_.size(); ++channel) {
            scale_[channel] = static_cast<float>(1 / (255 * op.standard_deviation[channel]));
            shift_[channel] =
                static_cast<float>(-op.mean[channel] / op.standard_deviation[channel]);
        }
    }

private:
    void forward() override {
        const std::int64_t parts = ceil_div(grid_.tile.pixels, kPixelsPerPart);
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t part = 0; part < parts; ++part) {
                for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
                    normalize(image, part * kPixelsPerPart, tile);
                }
            }
        }
    }

    static constexpr std::int64_t kPixelsPerPart = 256;

    /// Converts the pixels of a tile to rows of fp32 and writes them.
    void normalize(std::int64_t image, std::int64_t first, std::int64_t tile) const {
        float rows[kPixelsPerPart * 16];
        Tile target = grid_.tile;
        target.pixels = std::min(kPixelsPerPart, grid_.tile.pixels - first);
        const std::int64_t start =
            (image * grid_.tile.pixels + first) * op_.input[3] + tile * target.lanes;
        switch (op_.dtype) {
            case DType::u8:
                convert(static_cast<const std::uint8_t*>(tensors_.inputs[0]) + start, tile, target,
                        rows);
                break;
            case DType::f32:
                convert(static_cast<const float*>(tensors_.inputs[0]) + start, tile, target, rows);
                break;
            case DType::f16:
                convert(static_cast<const Half*>(tensors_.inputs[0]) + start, tile, target, rows);
                break;
            case DType::bf16:
                convert(static_cast<const BFloat*>(tensors_.inputs[0]) + start, tile, target, rows);
                break;
            case DType::s32:
                break;  // rejected by the constructor
        }
        auto* to = static_cast<std::byte*>(grid_.at(tensors_.output, image, tile)) +
                   static_cast<std::size_t>(first * target.stride) * size_of(target.dtype);
        loops_.store_floats(target, rows, to);
    }

    template <typename Number>
    void convert(const Number* from, std::int64_t tile, const Tile& target, float* rows) const {
        const float* scale = scale_.data() + tile * target.lanes;
        const float* shift = shift_.data() + tile * target.lanes;
        for (std::int64_t pixel = 0; pixel < target.pixels; ++pixel) {
            for (int lane = 0; lane < target.lanes; ++lane) {
                const float number = to_float(from[pixel * op_.input[3] + lane]);
                rows[pixel * target.lanes + lane] = scale[lane] * number + shift[lane];
            }
        }
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    std::vector<float> scale_, shift_;  // (C)
};

}  // namespace

KernelPtr build(const ops::InputNormalize& op, const KernelOptions& options,
                const Context& context) {
    return std::make_unique<InputNormalizeKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
