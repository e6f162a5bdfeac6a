// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "flat_tiles.hpp"

namespace hpcai::device::cpu {
namespace {

/// Saved: scale, shift, mean, 1 / deviation. Workspace: two sums, then three coefficients. Each is
/// (N, C) f32. Sums of channels are combined in double in a fixed order.
class GroupNormKernel final : public OperationKernel<ops::GroupNorm, Context> {
public:
    using OperationKernel::OperationKernel;

    KernelMemory memory() const override {
        return {.saved_bytes = arrays(4), .workspace_bytes = arrays(5)};
    }

private:
    void forward() override {
        sum_statistics();
        for_each_group(&GroupNormKernel::combine_statistics);
        apply();
    }
    void input_gradient() override {
        sum_gradients();
        for_each_group(&GroupNormKernel::combine_gradients);
        combine_parameter_gradients();
        apply_gradients();
    }

    enum Saved { scale, shift, mean, inverse_deviation };
    // dx = gradient_factor g + input_factor x + constant, with the g of GradientSource
    enum Scratch { first_sum, second_sum, gradient_factor, input_factor, constant };

    std::size_t arrays(std::int64_t count) const {
        return static_cast<std::size_t>(count * grid_.images * channels_) * sizeof(float);
    }
    float* saved(Saved which, std::int64_t image, std::int64_t channel = 0) const {
        return static_cast<float*>(tensors_.saved) + (which * grid_.images + image) * channels_ +
               channel;
    }
    float* saved(Saved which, const TileIndex& at) const {
        return saved(which, at.image, at.channel);
    }
    float* scratch(Scratch which, std::int64_t image, std::int64_t channel = 0) const {
        return static_cast<float*>(tensors_.workspace) +
               (which * grid_.images + image) * channels_ + channel;
    }
    float* scratch(Scratch which, const TileIndex& at) const {
        return scratch(which, at.image, at.channel);
    }
    double numbers_per_group() const { return static_cast<double>(grid_.tile.pixels * per_group_); }

    void for_each_group(void (GroupNormKernel::*body)(std::int64_t, std::int64_t) const) const {
#pragma omp parallel for collapse(2) schedule(static)
        for (std::int64_t image = 0; image < grid_.images; ++image) {
            for (std::int64_t group = 0; group < op_.groups; ++group) (this->*body)(image, group);
        }
    }

    /// Subtracts the first pixel of each image, which reduces cancellation in the variance.
    void sum_statistics() const {
        const Tile pixel{1, grid_.tile.stride, grid_.tile.lanes, grid_.tile.dtype};
        grid_.for_each([&](const TileIndex& at) {
            const void* x = grid_.at(tensors_.inputs[0], at);
            float* pivot = saved(mean, at);
            loops_.pixel_sum(pixel, x, pivot);
            loops_.statistics(grid_.tile,
                              {x, pivot, scratch(first_sum, at), scratch(second_sum, at)});
        });
    }

    void combine_statistics(std::int64_t image, std::int64_t group) const {
        const std::int64_t first = group * per_group_, end = first + per_group_;
        const double pixels = static_cast<double>(grid_.tile.pixels);
        const float *pivots = saved(mean, image), *sums = scratch(first_sum, image);
        const float* squares = scratch(second_sum, image);
        double group_mean = 0, variance = 0;
        for (std::int64_t c = first; c < end; ++c) {
            group_mean += (pivots[c] + sums[c] / pixels) / static_cast<double>(per_group_);
        }
        for (std::int64_t c = first; c < end; ++c) {
            const double offset = sums[c] / pixels;
            const double distance = pivots[c] + offset - group_mean;
            variance += std::max(squares[c] / pixels - offset * offset, 0.0) + distance * distance;
        }
        const double inverse =
            1 / std::sqrt(variance / static_cast<double>(per_group_) + op_.epsilon);
        for (std::int64_t c = first; c < end; ++c) {
            const double factor = tensors_.parameters[0][c] * inverse;
            *saved(scale, image, c) = static_cast<float>(factor);
            *saved(shift, image, c) =
                static_cast<float>(tensors_.parameters[1][c] - group_mean * factor);
            *saved(mean, image, c) = static_cast<float>(group_mean);
            *saved(inverse_deviation, image, c) = static_cast<float>(inverse);
        }
    }

    void apply() const {
        grid_.for_each([&](const TileIndex& at) {
            loops_.apply(grid_.tile,
                         {grid_.at(tensors_.inputs[0], at), nullptr, grid_.at(tensors_.output, at),
                          saved(scale, at), saved(shift, at), op_.relu});
        });
    }

    GradientSource source(const TileIndex& at) const {
        return {grid_.at(output_gradient(), at),
                grid_.at(added_output_gradient(), at),
                grid_.at(tensors_.inputs[0], at),
                nullptr,
                saved(scale, at),
                saved(shift, at),
                op_.relu};
    }

    void sum_gradients() const {
        grid_.for_each([&](const TileIndex& at) {
            loops_.gradient_sums(grid_.tile, {source(at), nullptr, saved(mean, at),
                                              scratch(first_sum, at), scratch(second_sum, at)});
        });
    }

    /// With m numbers in the group and xhat = (x - mean) / deviation: dx = (gamma g -
    /// sum(gamma g) / m - xhat sum(gamma g xhat) / m) / deviation; enum Scratch names its factors.
    void combine_gradients(std::int64_t image, std::int64_t group) const {
        const std::int64_t first = group * per_group_, end = first + per_group_;
        const double inverse = *saved(inverse_deviation, image, first), m = numbers_per_group();
        double sum_g = 0, sum_g_xhat = 0;  // with gamma, as in the formula
        for (std::int64_t c = first; c < end; ++c) {
            sum_g += double{tensors_.parameters[0][c]} * *scratch(first_sum, image, c);
            sum_g_xhat += double{tensors_.parameters[0][c]} * *scratch(second_sum, image, c);
        }
        const double x_factor = -inverse * inverse * inverse * sum_g_xhat / m;
        const double offset = -inverse * sum_g / m - x_factor * *saved(mean, image, first);
        for (std::int64_t c = first; c < end; ++c) {
            *scratch(gradient_factor, image, c) =
                static_cast<float>(tensors_.parameters[0][c] * inverse);
            *scratch(input_factor, image, c) = static_cast<float>(x_factor);
            *scratch(constant, image, c) = static_cast<float>(offset);
        }
    }

    void combine_parameter_gradients() const {
        for (std::int64_t c = 0; c < channels_; ++c) {
            double gamma_gradient = 0, beta_gradient = 0;
            for (std::int64_t image = 0; image < grid_.images; ++image) {
                gamma_gradient +=
                    double{*scratch(second_sum, image, c)} * *saved(inverse_deviation, image, c);
                beta_gradient += *scratch(first_sum, image, c);
            }
            tensors_.parameter_gradients[0][c] = static_cast<float>(gamma_gradient);
            tensors_.parameter_gradients[1][c] = static_cast<float>(beta_gradient);
        }
    }

    void apply_gradients() const {
        if (tensors_.input_gradients[0] == nullptr) return;
        grid_.for_each([&](const TileIndex& at) {
            loops_.gradient_apply(
                grid_.tile,
                {source(at), grid_.at(tensors_.input_gradients[0], at),
                 scratch(gradient_factor, at), scratch(input_factor, at), scratch(constant, at)});
        });
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    const std::int64_t channels_ = op_.input[3];
    const std::int64_t per_group_ = channels_ / op_.groups;
};

}  // namespace

HPCAI_BUILD_KERNEL(GroupNorm)

}  // namespace hpcai::device::cpu
