// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/base/error.hpp>

#include "context.hpp"

namespace hpcai::device::cpu {
namespace {

constexpr int kMaxLanes = 16;

/// A span is a set of samples that share statistics. Each pass computes two sums per image and
/// channel and adds those of a span's images in double, in a fixed order for any number of threads.
/// If a span covers several ranks, moments and sums of gradients are all-reduced in double. Each
/// rank subtracts its own pivot (load_pivot()), so moments rather than sums are all-reduced.
class BatchNormKernel final : public OperationKernel<ops::BatchNorm, Context> {
public:
    BatchNormKernel(const ops::BatchNorm& op, const KernelOptions& options, const Context& context)
        : OperationKernel(op, options, context),
          channels_(op.input[3]),
          ranks_(trains() ? ranks_of(op) : 1),
          span_samples_(op.statistics_samples > 0 ? std::min(op.statistics_samples, op.input[0])
                                                  : op.input[0]),
          spans_(trains() ? op.input[0] / span_samples_ : 1) {
        ensure(!op.add || op.relu, "a BatchNorm with an addition requires a ReLU");
        const SyncBatchNormReducer* reducer = options.sync_batch_norm_reducer;
        ensure(ranks_ == 1 || (reducer != nullptr && reducer->ranks() == ranks_),
               "the statistics span {} ranks, but the reducer sums over {}", ranks_,
               reducer == nullptr ? 1 : reducer->ranks());
    }

    KernelMemory memory() const override {
        const auto floats = [](std::int64_t count) {
            return static_cast<std::size_t>(count) * sizeof(float);
        };
        KernelMemory bytes;
        bytes.workspace_bytes = floats(2 * grid_.images * channels_ + 3 * spans_ * channels_) +
                                static_cast<std::size_t>(summed_count()) * sizeof(double);
        if (trains()) bytes.saved_bytes = floats(4 * spans_ * channels_);
        return bytes;
    }

    void bind(const KernelTensors& tensors) override {
        OperationKernel::bind(tensors);
        summed_ = static_cast<double*>(tensors.workspace);
        partial_ = reinterpret_cast<float*>(summed_ + summed_count());
        coefficients_ = partial_ + 2 * grid_.images * channels_;
        // An inference kernel saves nothing, so its scale and shift are in the workspace.
        float* saved = trains() ? static_cast<float*>(tensors.saved) : coefficients_;
        scale_ = saved;
        shift_ = saved + spans_ * channels_;
        if (trains()) {
            mean_ = saved + 2 * spans_ * channels_;
            inverse_deviation_ = saved + 3 * spans_ * channels_;
            ensure(!op_.add || tensors.input_gradients[1] != nullptr,
                   "the kernel has no buffer for the residual's gradient");
        }
    }

private:
    void forward() override {
        if (trains()) {
            sum_statistics();
            if (ranks_ > 1) all_reduce_moments();
            combine_statistics();
        } else {
            use_running_statistics();
        }
        apply();
    }
    void input_gradient() override {
        sum_gradients();
        if (ranks_ > 1) all_reduce_gradient_sums();
        combine_gradients();
        apply_gradients();
    }

    /// Returns the number of ranks whose samples share statistics.
    static std::int64_t ranks_of(const ops::BatchNorm& op) {
        return std::max<std::int64_t>(1, op.statistics_samples / op.input[0]);
    }
    std::int64_t summed_count() const { return ranks_ > 1 ? 2 * channels_ : 0; }
    /// Returns the number of pixels in a span, on all of its ranks.
    double span_pixels() const {
        return static_cast<double>(ranks_ * span_samples_ * grid_.tile.pixels);
    }
    std::int64_t span_of(std::int64_t image) const {
        return spans_ == 1 ? 0 : image / span_samples_;
    }
    /// Returns the offset of the channels of a tile in a (spans, C) array.
    std::int64_t offset_of(const TileIndex& at) const {
        return span_of(at.image) * channels_ + at.channel;
    }
    float* partial(int which, std::int64_t image, std::int64_t tile) const {
        return partial_ + (which * grid_.images + image) * channels_ + tile * grid_.tile.lanes;
    }

    /// Loads the span's first pixel; subtracting it reduces cancellation in the variance.
    void load_pivot(std::int64_t image, std::int64_t tile, float* pivot) const {
        const std::int64_t first = span_of(image) * span_samples_;
        const Tile pixel{1, grid_.tile.stride, grid_.tile.lanes, grid_.tile.dtype};
        loops_.pixel_sum(pixel, grid_.at(tensors_.inputs[0], first, tile), pivot);
    }

    void sum_statistics() const {
        grid_.for_each([&](const TileIndex& at) {
            float pivot[kMaxLanes];
            load_pivot(at.image, at.tile, pivot);
            loops_.statistics(
                grid_.tile, {grid_.at(tensors_.inputs[0], at), pivot, partial(0, at.image, at.tile),
                             partial(1, at.image, at.tile)});
        });
    }

    /// The two sums of a span for the channels of a tile, added image after image.
    struct SpanSums {
        double first[kMaxLanes] = {}, second[kMaxLanes] = {};
    };

    /// Returns the sums over this rank's samples.
    SpanSums local_sums(std::int64_t span, std::int64_t tile) const {
        SpanSums sums;
        for (std::int64_t image = span * span_samples_; image < (span + 1) * span_samples_;
             ++image) {
            const float *first = partial(0, image, tile), *second = partial(1, image, tile);
            for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
                sums.first[lane] += first[lane];
                sums.second[lane] += second[lane];
            }
        }
        return sums;
    }

    /// The moments of a span for the channels of a tile.
    struct Moments {
        double mean[kMaxLanes] = {}, variance[kMaxLanes] = {};
    };

    /// Returns the moments of this rank's samples.
    Moments local_moments(std::int64_t span, std::int64_t tile) const {
        const double count = static_cast<double>(span_samples_ * grid_.tile.pixels);
        float pivot[kMaxLanes];
        load_pivot(span * span_samples_, tile, pivot);
        const SpanSums sums = local_sums(span, tile);
        Moments moments;
        for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
            const double offset = sums.first[lane] / count;
            moments.mean[lane] = pivot[lane] + offset;
            moments.variance[lane] = std::max(sums.second[lane] / count - offset * offset, 0.0);
        }
        return moments;
    }

    /// Sums the means and the means of squares. All ranks have the same batch size, so the mean
    /// over ranks is the mean over all samples.
    void all_reduce_moments() const {
#pragma omp parallel for schedule(static)
        for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
            const Moments local = local_moments(0, tile);
            for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
                const double mean = local.mean[lane];
                summed(0, tile)[lane] = mean;
                summed(1, tile)[lane] = local.variance[lane] + mean * mean;
            }
        }
        options_.sync_batch_norm_reducer->sum({summed_, static_cast<std::size_t>(summed_count())});
    }

    Moments moments(std::int64_t span, std::int64_t tile) const {
        if (ranks_ == 1) return local_moments(span, tile);
        const auto ranks = static_cast<double>(ranks_);
        Moments moments;
        for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
            const double mean = summed(0, tile)[lane] / ranks;
            moments.mean[lane] = mean;
            moments.variance[lane] = std::max(summed(1, tile)[lane] / ranks - mean * mean, 0.0);
        }
        return moments;
    }

    /// Computes the moments of every span; their means over spans update the running statistics.
    void combine_statistics() const {
        const double count = span_pixels();
        const double unbiased = count > 1 ? count / (count - 1) : 1;
        const double spans = static_cast<double>(spans_);
#pragma omp parallel for schedule(static)
        for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
            double mean_sum[kMaxLanes] = {}, variance_sum[kMaxLanes] = {};
            for (std::int64_t span = 0; span < spans_; ++span) {
                const Moments m = moments(span, tile);
                for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
                    set_affine(span, tile * grid_.tile.lanes + lane, m.mean[lane],
                               m.variance[lane]);
                    mean_sum[lane] += m.mean[lane];
                    variance_sum[lane] += m.variance[lane];
                }
            }
            for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
                const std::int64_t channel = tile * grid_.tile.lanes + lane;
                update(tensors_.running_mean[channel], mean_sum[lane] / spans);
                update(tensors_.running_variance[channel], unbiased * variance_sum[lane] / spans);
            }
        }
    }

    void update(float& running, double value) const {
        running = static_cast<float>((1 - op_.momentum) * running + op_.momentum * value);
    }

    void set_affine(std::int64_t span, std::int64_t channel, double mean, double variance) const {
        const double inverse = 1 / std::sqrt(variance + op_.epsilon);
        const double scale = tensors_.parameters[0][channel] * inverse;
        const std::int64_t index = span * channels_ + channel;
        scale_[index] = static_cast<float>(scale);
        shift_[index] = static_cast<float>(tensors_.parameters[1][channel] - mean * scale);
        if (mean_ == nullptr) return;
        mean_[index] = static_cast<float>(mean);
        inverse_deviation_[index] = static_cast<float>(inverse);
    }

    void use_running_statistics() const {
        for (std::int64_t channel = 0; channel < channels_; ++channel) {
            set_affine(0, channel, tensors_.running_mean[channel],
                       tensors_.running_variance[channel]);
        }
    }

    void apply() const {
        void* residual = op_.add ? tensors_.inputs[1] : nullptr;
        grid_.for_each([&](const TileIndex& at) {
            const std::int64_t c = offset_of(at);
            loops_.apply(grid_.tile,
                         {grid_.at(tensors_.inputs[0], at), grid_.at(residual, at),
                          grid_.at(tensors_.output, at), scale_ + c, shift_ + c, op_.relu});
        });
    }

    GradientSource source(const TileIndex& at) const {
        const std::int64_t c = offset_of(at);
        return {grid_.at(output_gradient(), at),
                grid_.at(added_output_gradient(), at),
                grid_.at(tensors_.inputs[0], at),
                op_.add ? grid_.at(tensors_.output, at) : nullptr,
                scale_ + c,
                shift_ + c,
                op_.relu};
    }

    void sum_gradients() const {
        void* masked = op_.add ? tensors_.input_gradients[1] : nullptr;  // the residual's gradient
        grid_.for_each([&](const TileIndex& at) {
            loops_.gradient_sums(grid_.tile,
                                 {source(at), grid_.at(masked, at), mean_ + offset_of(at),
                                  partial(0, at.image, at.tile), partial(1, at.image, at.tile)});
        });
    }

    void all_reduce_gradient_sums() const {
#pragma omp parallel for schedule(static)
        for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
            const SpanSums local = local_sums(0, tile);
            std::copy_n(local.first, grid_.tile.lanes, summed(0, tile));
            std::copy_n(local.second, grid_.tile.lanes, summed(1, tile));
        }
        options_.sync_batch_norm_reducer->sum({summed_, static_cast<std::size_t>(summed_count())});
    }

    /// Returns the sums over all ranks of the span; `local` has the sums of this rank.
    SpanSums span_sums(const SpanSums& local, std::int64_t tile) const {
        if (ranks_ == 1) return local;
        SpanSums sums;
        std::copy_n(summed(0, tile), grid_.tile.lanes, sums.first);
        std::copy_n(summed(1, tile), grid_.tile.lanes, sums.second);
        return sums;
    }

    /// With n pixels in a span, the gradient g of GradientSource and xhat = (x - mean) / deviation:
    /// dx = (gamma / deviation) * (g - sum(g) / n - xhat sum(g xhat) / n) = a g + b x + c. The
    /// gradients of gamma and beta cover only this rank's samples, like those of all parameters.
    void combine_gradients() const {
#pragma omp parallel for schedule(static)
        for (std::int64_t tile = 0; tile < grid_.tiles; ++tile) {
            double gamma_gradient[kMaxLanes] = {}, beta_gradient[kMaxLanes] = {};
            for (std::int64_t span = 0; span < spans_; ++span) {
                const SpanSums local = local_sums(span, tile), all = span_sums(local, tile);
                for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
                    const std::int64_t channel = tile * grid_.tile.lanes + lane;
                    const double inverse = inverse_deviation_[span * channels_ + channel];
                    set_coefficients(span, channel, all.first[lane], all.second[lane] * inverse);
                    gamma_gradient[lane] += local.second[lane] * inverse;
                    beta_gradient[lane] += local.first[lane];
                }
            }
            for (int lane = 0; lane < grid_.tile.lanes; ++lane) {
                const std::int64_t channel = tile * grid_.tile.lanes + lane;
                tensors_.parameter_gradients[0][channel] = static_cast<float>(gamma_gradient[lane]);
                tensors_.parameter_gradients[1][channel] = static_cast<float>(beta_gradient[lane]);
            }
        }
    }

    void set_coefficients(std::int64_t span, std::int64_t channel, double sum_g,
                          double sum_g_xhat) const {
        const double count = span_pixels();
        const std::int64_t index = span * channels_ + channel;
        const double inverse = inverse_deviation_[index];
        const double a = tensors_.parameters[0][channel] * inverse;
        const double b = -a * inverse * sum_g_xhat / count;
        coefficient(0)[index] = static_cast<float>(a);
        coefficient(1)[index] = static_cast<float>(b);
        coefficient(2)[index] = static_cast<float>(-a * sum_g / count - b * mean_[index]);
    }

    double* summed(int which, std::int64_t tile) const {
        return summed_ + which * channels_ + tile * grid_.tile.lanes;
    }
    float* coefficient(int which) const {
        return coefficients_ + which * spans_ * channels_;
    }

    void apply_gradients() const {
        if (tensors_.input_gradients[0] == nullptr) return;
        grid_.for_each([&](const TileIndex& at) {
            GradientSource from = source(at);
            if (op_.add) {  // sum_gradients() has written g there
                from.dy0 = grid_.at(tensors_.input_gradients[1], at);
                from.dy1 = nullptr;
                from.relu = false;
            }
            const std::int64_t c = offset_of(at);
            loops_.gradient_apply(
                grid_.tile, {from, grid_.at(tensors_.input_gradients[0], at), coefficient(0) + c,
                             coefficient(1) + c, coefficient(2) + c});
        });
    }

    const SimdKernels& loops_ = *context_.loops;
    const TileGrid grid_ = tile_grid(context_.layouts, op_.input, options_.compute);
    std::int64_t channels_, ranks_, span_samples_, spans_;
    double* summed_ = nullptr;            // (2, C): sums over ranks; empty for one rank
    float* partial_ = nullptr;            // (2, N, C): two sums per image and channel
    float* coefficients_ = nullptr;       // (3, spans, C): a, b and c of combine_gradients()
    float* scale_ = nullptr;              // (spans, C): y = scale x + shift in the forward pass
    float* shift_ = nullptr;              // (spans, C)
    float* mean_ = nullptr;               // (spans, C)
    float* inverse_deviation_ = nullptr;  // (spans, C)
};

}  // namespace

KernelPtr build(const ops::BatchNorm& op, const KernelOptions& options, const Context& context) {
    if (op.from_sums) throw_unsupported(op);
    if (op.frozen) return build_frozen_norm(op, options, context);
    return std::make_unique<BatchNormKernel>(op, options, context);
}

}  // namespace hpcai::device::cpu
