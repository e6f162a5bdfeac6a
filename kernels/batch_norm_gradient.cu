// SPDX-License-Identifier: Apache-2.0
#include "batch_norm.hpp"
#include "batch_norm_tiles.cuh"

namespace hpcai::kernels {
namespace batch_norm {
namespace {

/// The source of the gate of the ReLU.
enum class Gate { none, affine, mask };

template <typename T>
struct GradientTensors {
    const T *x, *dy0, *dy1;
    const float *scale, *shift, *mean;
    const std::uint8_t* mask;
    T* masked;  // written by the sums, with a mask
};

template <typename T, int kWidth>
struct Loaded {
    Raw<T, kWidth> x, dy0, dy1;
    unsigned bits;  // of the mask
};

/// Reads pixels of one span, which begins at element `base`, and computes the gradient of the input
/// of the ReLU.
template <typename T, int kWidth, Gate kGate, bool kTwo>
class Source {
public:
    using Element = Loaded<T, kWidth>;

    __device__ Source(const GradientTensors<T>& tensors, std::int64_t base, std::int64_t channels,
                      std::int64_t of_span)
        : tensors_(tensors), base_(base), channels_(channels) {
        if constexpr (kGate == Gate::affine) {
            scale_ = load<kWidth>(tensors.scale + of_span);
            shift_ = load<kWidth>(tensors.shift + of_span);
        }
    }
    __device__ std::int64_t at(std::int64_t pixel) const { return base_ + pixel * channels_; }

    __device__ Element read(std::int64_t pixel) const {
        const std::int64_t from = at(pixel);
        Element element;
        element.x = Raw<T, kWidth>::load(tensors_.x + from);
        element.dy0 = Raw<T, kWidth>::load(tensors_.dy0 + from);
        if constexpr (kTwo) element.dy1 = Raw<T, kWidth>::load(tensors_.dy1 + from);
        if constexpr (kGate == Gate::mask) {
            element.bits = static_cast<unsigned>(tensors_.mask[from / 8] >> from % 8);
        }
        return element;
    }
    __device__ Pack<kWidth> gradient(const Element& element, const Pack<kWidth>& x) const {
        Pack<kWidth> result = element.dy0.numbers();
        Pack<kWidth> second = {};
        if constexpr (kTwo) second = element.dy1.numbers();
        for (int i = 0; i < kWidth; ++i) {
            float g = result.lane[i];
            if constexpr (kTwo) g += second.lane[i];
            if constexpr (kGate == Gate::affine) {
                // The same operation as in the forward pass, so that the signs agree.
                g = fmaf(x.lane[i], scale_.lane[i], shift_.lane[i]) > 0 ? g : 0;
            }
            if constexpr (kGate == Gate::mask) g = element.bits >> i & 1 ? g : 0;
            result.lane[i] = g;
        }
        return result;
    }

private:
    const GradientTensors<T>& tensors_;
    std::int64_t base_, channels_;
    Pack<kWidth> scale_, shift_;
};

template <typename T, int kWidth, Gate kGate, bool kTwo>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_sum_kernel(const Tiling tiling, const GradientTensors<T> tensors, float* workspace) {
    const Place<kWidth> place(tiling);
    float sum[kWidth] = {}, products[kWidth] = {};
    if (place.works) {
        const std::int64_t span = blockIdx.y, channels = tiling.channels;
        const std::int64_t of_span = span * channels + place.channel;
        const Source<T, kWidth, kGate, kTwo> source(
            tensors, span * tiling.pixels * channels + place.channel, channels, of_span);
        const auto mean = load<kWidth>(tensors.mean + of_span);
        place.template walk<kInFlight<T>>(
            tiling.pixels, [&](std::int64_t pixel) { return source.read(pixel); },
            [&](std::int64_t pixel, const auto& element) {
                const Pack<kWidth> x = element.x.numbers();
                Pack<kWidth> g = source.gradient(element, x);
                if constexpr (kGate == Gate::mask) {
                    // The sums use the rounded value that will be read again.
                    for (float& lane : g.lane) lane = to_float(from_float<T>(lane));
                    store(tensors.masked + source.at(pixel), g);
                }
                for (int i = 0; i < kWidth; ++i) {
                    sum[i] += g.lane[i];
                    products[i] = fmaf(g.lane[i], x.lane[i] - mean.lane[i], products[i]);
                }
            });
    }
    write_partial(tiling, place, sum, products, workspace);
}

/// dx = a g + b x + c.
struct Coefficients {
    double a, b, c;
};

/// `sums` are the sums of g and of g xhat over `count` pixels.
__device__ inline Coefficients coefficients_of(const Sums& sums, float gamma, double inverse,
                                               float mean, double count) {
    const double a = gamma * inverse;
    const double b = -a * inverse * sums.second / count;
    return {a, b, -a * sums.first / count - b * mean};
}

struct ChannelGradients {
    const float *gamma, *mean, *inverse_deviation;
    float *gamma_gradient, *beta_gradient;
};

/// Coefficients are (3, spans, C).
__global__ void __launch_bounds__(kFinalThreads)
    combine_gradients_kernel(const Tiling tiling, int spans, const ChannelGradients of,
                             const float* workspace, float* coefficients) {
    const int channel = static_cast<int>(blockIdx.x) * kFinalChannels +
                        static_cast<int>(threadIdx.x) % kFinalChannels;
    const bool writes = threadIdx.x < kFinalChannels && channel < tiling.channels;
    const auto count = static_cast<double>(tiling.pixels);
    const std::int64_t all = static_cast<std::int64_t>(spans) * tiling.channels;
    double gamma_gradient = 0, beta_gradient = 0;
    for (int span = 0; span < spans; ++span) {
        const Sums sums = combine_partials(tiling, span, channel, workspace);
        if (!writes) continue;
        const std::int64_t index = static_cast<std::int64_t>(span) * tiling.channels + channel;
        const double inverse = of.inverse_deviation[index];
        const double products = sums.second * inverse;
        const auto [a, b, c] = coefficients_of({sums.first, products}, of.gamma[channel], inverse,
                                               of.mean[index], count);
        coefficients[index] = static_cast<float>(a);
        coefficients[all + index] = static_cast<float>(b);
        coefficients[2 * all + index] = static_cast<float>(c);
        gamma_gradient += products;
        beta_gradient += sums.first;
    }
    if (!writes) return;
    of.gamma_gradient[channel] = static_cast<float>(gamma_gradient);
    of.beta_gradient[channel] = static_cast<float>(beta_gradient);
}

__global__ void coefficients_kernel(const BatchNormShape shape,
                                    const BatchNormCoefficientsArguments of) {
    for (std::int64_t channel = first_item(); channel < shape.channels; channel += item_stride()) {
        const Sums sums{of.sums[shape.channels + channel], of.sums[channel]};
        const auto [a, b, c] = coefficients_of(
            sums, of.gamma[channel], of.statistics.inverse_deviation[channel],
            of.statistics.mean[channel], static_cast<double>(of.ranks * shape.pixels));
        of.coefficients[channel] = static_cast<float>(a);
        of.coefficients[shape.channels + channel] = static_cast<float>(b);
        of.coefficients[2 * shape.channels + channel] = static_cast<float>(c);
    }
}

template <typename T, int kWidth, Gate kGate, bool kTwo>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    gradient_apply_kernel(const Tiling tiling, const GradientTensors<T> tensors,
                          const float* coefficients, T* dx) {
    const Place<kWidth> place(tiling);
    if (!place.works) return;
    const std::int64_t channels = tiling.channels;
    // In descending order, as in the forward pass.
    const std::int64_t span = gridDim.y - 1 - blockIdx.y, all = gridDim.y * channels;
    const std::int64_t of_span = span * channels + place.channel;
    const std::int64_t last = ((span + 1) * tiling.pixels - 1) * channels + place.channel;
    const Source<T, kWidth, kGate, kTwo> source(tensors, last, -channels, of_span);
    const auto a = load<kWidth>(coefficients + of_span);
    const auto b = load<kWidth>(coefficients + all + of_span);
    const auto c = load<kWidth>(coefficients + 2 * all + of_span);
    constexpr bool kMany = kTwo && kGate == Gate::affine;  // too few registers for two pixels
    place.template walk<kMany ? 1 : kInFlight<T>>(
        tiling.pixels, [&](std::int64_t pixel) { return source.read(pixel); },
        [&](std::int64_t pixel, const auto& element) {
            const Pack<kWidth> x = element.x.numbers();
            Pack<kWidth> g = source.gradient(element, x);
            for (int i = 0; i < kWidth; ++i) {
                g.lane[i] = fmaf(a.lane[i], g.lane[i], fmaf(b.lane[i], x.lane[i], c.lane[i]));
            }
            store(dx + source.at(pixel), g);
        });
}

template <typename T>
GradientTensors<T> tensors_of(const BatchNormGradientArguments& arguments) {
    const BatchNormStatistics& statistics = arguments.statistics;
    return {static_cast<const T*>(arguments.x),
            static_cast<const T*>(arguments.dy0),
            static_cast<const T*>(arguments.dy1),
            statistics.scale,
            statistics.shift,
            statistics.mean,
            reinterpret_cast<const std::uint8_t*>(arguments.mask),
            static_cast<T*>(arguments.residual_gradient)};
}

/// Calls `body` with the width, the gate and whether there are two gradients.
template <typename Body>
void with_variant(bool wide, Gate gate, bool two, const Body& body) {
    const auto with_gate = [&]<int kWidth, bool kTwo>() {
        if (gate == Gate::none) return body.template operator()<kWidth, Gate::none, kTwo>();
        if (gate == Gate::affine) return body.template operator()<kWidth, Gate::affine, kTwo>();
        return body.template operator()<kWidth, Gate::mask, kTwo>();
    };
    if (wide) {
        return two ? with_gate.template operator()<kWide, true>()
                   : with_gate.template operator()<kWide, false>();
    }
    return two ? with_gate.template operator()<1, true>()
               : with_gate.template operator()<1, false>();
}

float* coefficients_at(const BatchNormShape& shape, const BatchNormGradientArguments& arguments) {
    return static_cast<float*>(arguments.workspace) + partial_floats(shape);
}

}  // namespace

void sum_gradients(const BatchNormShape& shape, const BatchNormGradientArguments& arguments,
                   Stream stream) {
    const Gate gate = arguments.mask != nullptr ? Gate::mask
                      : arguments.relu          ? Gate::affine
                                                : Gate::none;
    const Tiling tiling = tiling_of(shape);
    auto* workspace = static_cast<float*>(arguments.workspace);
    with_type(shape.dtype, [&]<typename T>() {
        with_variant(is_wide(shape), gate, arguments.dy1 != nullptr,
                     [&]<int kWidth, Gate kGate, bool kTwo>() {
                         launch(gradient_sum_kernel<T, kWidth, kGate, kTwo>,
                                grid_of(shape, tiling, stream), tiling, tensors_of<T>(arguments),
                                workspace);
                     });
    });
}

}  // namespace batch_norm

void batch_norm_gradient_sums(const BatchNormShape& shape,
                              const BatchNormGradientArguments& arguments, Stream stream) {
    using namespace batch_norm;
    sum_gradients(shape, arguments, stream);
    const BatchNormStatistics& statistics = arguments.statistics;
    launch(combine_gradients_kernel, final_grid(shape.channels, stream), tiling_of(shape),
           static_cast<int>(shape.spans),
           ChannelGradients{arguments.gamma, statistics.mean, statistics.inverse_deviation,
                            arguments.gamma_gradient, arguments.beta_gradient},
           static_cast<const float*>(arguments.workspace), coefficients_at(shape, arguments));
}

void batch_norm_gradient_coefficients(const BatchNormShape& shape,
                                      const BatchNormCoefficientsArguments& arguments,
                                      Stream stream) {
    launch(batch_norm::coefficients_kernel, grid_over(shape.channels, stream), shape, arguments);
}

void batch_norm_gradient_apply(const BatchNormShape& shape,
                               const BatchNormGradientArguments& arguments, Stream stream) {
    using namespace batch_norm;
    BatchNormGradientArguments of = arguments;
    if (of.mask != nullptr) {  // the sums have written the gradient of the ReLU's input
        of.dy0 = of.residual_gradient;
        of.dy1 = nullptr;
        of.relu = false;
    }
    const float* coefficients =
        of.coefficients != nullptr ? of.coefficients : coefficients_at(shape, of);
    const Tiling tiling = tiling_of(shape);
    with_type(shape.dtype, [&]<typename T>() {
        with_variant(is_wide(shape), of.relu ? Gate::affine : Gate::none, of.dy1 != nullptr,
                     [&]<int kWidth, Gate kGate, bool kTwo>() {
                         if constexpr (kGate != Gate::mask) {
                             launch(gradient_apply_kernel<T, kWidth, kGate, kTwo>,
                                    grid_of(shape, tiling, stream), tiling, tensors_of<T>(of),
                                    coefficients, static_cast<T*>(of.dx));
                         }
                     });
    });
}

}  // namespace hpcai::kernels
