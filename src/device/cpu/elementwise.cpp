// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/error.hpp>

#include "flat_tiles.hpp"
#include "numbers.hpp"

namespace hpcai::device::cpu {
namespace {

class ReluKernel final : public OperationKernel<ops::Relu, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override { loops_.add(tensors_.inputs[0], nullptr, tensors_.output, true); }
    void input_gradient() override {
        loops_.relu_gradient(output_gradient(), added_output_gradient(), tensors_.output,
                             tensors_.input_gradients[0]);
    }

    const FlatLoops loops_{context_, op_.input.elements(), options_.compute};
};

class AddKernel final : public OperationKernel<ops::Add, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override { sum(tensors_.inputs[0], tensors_.inputs[1], tensors_.output); }
    void input_gradient() override {
        for (void* to : tensors_.input_gradients) {
            if (to != nullptr) sum(output_gradient(), added_output_gradient(), to);
        }
    }
    void sum(void* a, void* b, void* to) const { loops_.add(a, b, to, false); }

    const FlatLoops loops_{context_, op_.input.elements(), options_.compute};
};

class InputNormalizeKernel final : public OperationKernel<ops::InputNormalize, Context> {
public:
    InputNormalizeKernel(const ops::InputNormalize& op, const KernelOptions& options,
                         const Context& context)
        : OperationKernel(op, options, context),
          scale_(static_cast<std::size_t>(op.input[3]), 1.0f),
          shift_(static_cast<std::size_t>(op.input[3]), 0.0f) {
        ensure(op.dtype != DType::s32, "images must be u8 or floats, not {}", name_of(op.dtype));
        if (op.dtype != DType::u8) return;
        ensure(op.mean.size() == scale_.size() && op.standard_deviation.size() == scale_.size(),
               "{} means and {} standard deviations do not match {} channels", op.mean.size(),
               op.standard_deviation.size(), scale_.size());
        for (std::size_t channel = 0; channel < scale_.size(); ++channel) {
            scale_[channel] = static_cast<float>(1 / (255 * op.standard_deviation[channel]));
            shift_[channel] =
                static_cast<float>(-op.mean[channel] / op.standard_deviation[channel]);
        }
    }

private:
    void forward() override {
        const std::int64_t blocks = ceil_div(grid_.tile.pixels, kPixelsPerBlock);
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t block = 0; block < blocks; ++block) {
                for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
                    normalize(image, block * kPixelsPerBlock, tile);
                }
            }
        }
    }

    static constexpr std::int64_t kPixelsPerBlock = 256;

    /// Normalizes up to kPixelsPerBlock pixels of a tile, from pixel `first`.
    void normalize(std::int64_t image, std::int64_t first, std::int64_t tile) const {
        float normalized[kPixelsPerBlock * 16];
        Tile target = grid_.tile;
        target.pixels = std::min(kPixelsPerBlock, grid_.tile.pixels - first);
        const std::int64_t start =
            (image * grid_.tile.pixels + first) * op_.input[3] + tile * target.lanes;
        const float* scale = scale_.data() + tile * target.lanes;
        const float* shift = shift_.data() + tile * target.lanes;
        const auto convert = [&](const auto* from) {
            for (std::int64_t pixel = 0; pixel < target.pixels; ++pixel) {
                for (int lane = 0; lane < target.lanes; ++lane) {
                    const float number = to_float(from[pixel * op_.input[3] + lane]);
                    normalized[pixel * target.lanes + lane] = scale[lane] * number + shift[lane];
                }
            }
        };
        if (op_.dtype == DType::u8) convert(input<std::uint8_t>(0) + start);
        if (op_.dtype == DType::f32) convert(input<float>(0) + start);
        if (op_.dtype == DType::f16) convert(input<Half>(0) + start);
        if (op_.dtype == DType::bf16) convert(input<BFloat>(0) + start);
        auto* to = static_cast<std::byte*>(grid_.at(tensors_.output, image, tile)) +
                   static_cast<std::size_t>(first * target.stride) * size_of(target.dtype);
        loops_.store_floats(target, normalized, to);
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    std::vector<float> scale_, shift_;  // (C)
};

/// In the backward pass the workspace has two sums for each image, (2, N, C) f32, because
/// SimdKernels::gradient_sums computes two. A bias needs only the first, that of the gradients.
class BiasKernel final : public OperationKernel<ops::Bias, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        if (!trains()) return {};
        return {.workspace_bytes =
                    static_cast<std::size_t>(2 * grid_.images * channels_) * sizeof(float)};
    }

private:
    void forward() override {
        grid_.for_each([&](const TileIndex& at) {
            loops_.apply(grid_.tile,
                         {grid_.at(tensors_.inputs[0], at), nullptr, grid_.at(tensors_.output, at),
                          identity_.ones, tensors_.parameters[0] + at.channel, op_.relu});
        });
    }
    void input_gradient() override {
        sum_gradients();
        combine_sums();
    }

    float* sums(int which, std::int64_t image) const {
        return static_cast<float*>(tensors_.workspace) + (which * grid_.images + image) * channels_;
    }

    /// Also writes the gradient of the input.
    void sum_gradients() const {
        // Without a ReLU, the loop reads the gate but does not need it: any valid address serves.
        void* gate = op_.relu ? tensors_.output : output_gradient();
        grid_.for_each([&](const TileIndex& at) {
            const GradientSource source = identity_.source(grid_.at(output_gradient(), at),
                                                           grid_.at(added_output_gradient(), at),
                                                           grid_.at(gate, at), op_.relu);
            loops_.gradient_sums(
                grid_.tile, {source, grid_.at(tensors_.input_gradients[0], at), identity_.zeros,
                             sums(0, at.image) + at.channel, sums(1, at.image) + at.channel});
        });
    }
    void combine_sums() const {
        for (std::int64_t channel = 0; channel < channels_; ++channel) {
            double sum = 0;
            for (std::int64_t image = 0; image < grid_.images; ++image) {
                sum += sums(0, image)[channel];
            }
            tensors_.parameter_gradients[0][channel] = static_cast<float>(sum);
        }
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const std::int64_t channels_ = op_.input[3];
    Identity identity_;
};

/// Maps pixel indices on an axis between a fine and a coarse image.
struct Axis {
    std::vector<std::int32_t> coarse_of;   // (fine): the coarse index of a fine index
    std::vector<std::int32_t> first_fine;  // (coarse + 1): the first fine index of a coarse index

    Axis(std::int64_t fine, std::int64_t coarse) {
        for (std::int64_t index = 0; index < fine; ++index) {
            coarse_of.push_back(static_cast<std::int32_t>(index * coarse / fine));
        }
        for (std::int64_t index = 0; index <= coarse; ++index) {
            first_fine.push_back(static_cast<std::int32_t>(ceil_div(index * fine, coarse)));
        }
    }
};

class UpsampleAddKernel final : public OperationKernel<ops::UpsampleAdd, Context> {
public:
    using OperationKernel::OperationKernel;

private:
    void forward() override { for_each_row(op_.input[1], &UpsampleAddKernel::upsample); }
    void input_gradient() override {
        if (tensors_.input_gradients[0] != nullptr) {
            flat_.add(output_gradient(), added_output_gradient(), tensors_.input_gradients[0],
                      false);
        }
        if (tensors_.input_gradients[1] == nullptr) return;
        for_each_row(op_.coarse[1], &UpsampleAddKernel::downsample);
    }

    using RowFunction = void (UpsampleAddKernel::*)(std::int64_t image, std::int64_t tile,
                                                    std::int64_t row) const;
    void for_each_row(std::int64_t rows, RowFunction body) const {
#pragma omp parallel for collapse(3) schedule(static)
        for (std::int64_t image = 0; image < fine_.images; ++image) {
            for (std::int64_t tile = 0; tile < fine_.tiles; ++tile) {
                for (std::int64_t row = 0; row < rows; ++row) (this->*body)(image, tile, row);
            }
        }
    }

    /// Returns the address of a tile's row that begins with `first_pixel`.
    static void* row_at(const TileGrid& grid, void* base, std::int64_t image, std::int64_t tile,
                        std::int64_t first_pixel) {
        const auto elements = static_cast<std::size_t>(first_pixel * grid.tile.stride);
        return offset(grid.at(base, image, tile), elements * size_of(grid.tile.dtype));
    }

    void upsample(std::int64_t image, std::int64_t tile, std::int64_t row) const {
        Tile target = fine_.tile;
        target.pixels = op_.input[2];
        const std::int64_t coarse_row = rows_.coarse_of[row];
        const std::int64_t fine = row * op_.input[2], coarse = coarse_row * op_.coarse[2];
        loops_.upsample_add(
            target, {row_at(fine_, tensors_.inputs[0], image, tile, fine),
                     row_at(coarse_, tensors_.inputs[1], image, tile, coarse),
                     row_at(fine_, tensors_.output, image, tile, fine), columns_.coarse_of.data()});
    }

    void downsample(std::int64_t image, std::int64_t tile, std::int64_t row) const {
        Tile target = coarse_.tile;
        target.pixels = op_.coarse[2];
        const auto index = static_cast<std::size_t>(row);
        const std::int64_t first = rows_.first_fine[index] * op_.input[2];
        loops_.downsample_sum(
            target, {row_at(fine_, output_gradient(), image, tile, first),
                     row_at(fine_, added_output_gradient(), image, tile, first),
                     row_at(coarse_, tensors_.input_gradients[1], image, tile, row * op_.coarse[2]),
                     rows_.first_fine[index + 1] - rows_.first_fine[index], op_.input[2],
                     columns_.first_fine.data()});
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid fine_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const TileGrid coarse_ = tile_grid(context_.layouts, op_.coarse, options_.compute);
    const FlatLoops flat_{context_, op_.input.elements(), options_.compute};
    const Axis rows_{op_.input[1], op_.coarse[1]}, columns_{op_.input[2], op_.coarse[2]};
};

}  // namespace

HPCAI_BUILD_KERNEL(Relu)
HPCAI_BUILD_KERNEL(Add)
HPCAI_BUILD_KERNEL(InputNormalize)
HPCAI_BUILD_KERNEL(Bias)
HPCAI_BUILD_KERNEL(UpsampleAdd)

}  // namespace hpcai::device::cpu
