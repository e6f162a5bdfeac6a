// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "batch_norm_tiles.cuh"

/// Code that the gradient kernels of BatchNorm share with those of operations that include one.
namespace hpcai::kernels::batch_norm {

/// How a kernel determines where the ReLU passed its input. none: there is no ReLU, or dy0 is the
/// gradient of its input; affine: where x * scale + shift > 0; mask: where the mask has a 1.
enum class Gate { none, affine, mask };

template <typename T>
struct GradientTensors {
    const T *x, *dy0, *dy1;
    const float *scale, *shift, *mean;
    const std::uint8_t* mask;
    T* stored_gradient;  // written by gradient_for_sums() with Gate::mask
};

template <typename T, int kWidth>
struct Loaded {
    Raw<T, kWidth> x, dy0, dy1;
    unsigned bits;  // of the mask
};

/// Reads pixels of one span and computes the gradient of the ReLU's input. Pixel 0 is at element
/// `base`; pixels are `channels` elements apart, which is negative for descending order.
template <typename T, int kWidth, Gate kGate, bool kHasDy1>
class Source {
public:
    using Element = Loaded<T, kWidth>;

    __device__ Source(const GradientTensors<T>& tensors, std::int64_t base, std::int64_t channels,
                      std::int64_t statistic_index)
        : tensors_(tensors), base_(base), channels_(channels) {
        if constexpr (kGate == Gate::affine) {
            scale_ = load<kWidth>(tensors.scale + statistic_index);
            shift_ = load<kWidth>(tensors.shift + statistic_index);
        }
    }
    __device__ std::int64_t at(std::int64_t pixel) const { return base_ + pixel * channels_; }

    __device__ Element read(std::int64_t pixel) const {
        const std::int64_t from = at(pixel);
        Element element;
        element.x = Raw<T, kWidth>::load(tensors_.x + from);
        element.dy0 = Raw<T, kWidth>::load(tensors_.dy0 + from);
        if constexpr (kHasDy1) element.dy1 = Raw<T, kWidth>::load(tensors_.dy1 + from);
        if constexpr (kGate == Gate::mask) {
            element.bits = static_cast<unsigned>(tensors_.mask[from / 8] >> from % 8);
        }
        return element;
    }
    __device__ Pack<kWidth> gradient(const Element& element, const Pack<kWidth>& x) const {
        Pack<kWidth> result = element.dy0.numbers();
        Pack<kWidth> second = {};
        if constexpr (kHasDy1) second = element.dy1.numbers();
        for (int i = 0; i < kWidth; ++i) {
            float g = result.lane[i];
            if constexpr (kHasDy1) g += second.lane[i];
            if constexpr (kGate == Gate::affine) {
                // The same operation as in the forward pass, so that the signs agree.
                g = fmaf(x.lane[i], scale_.lane[i], shift_.lane[i]) > 0 ? g : 0;
            }
            if constexpr (kGate == Gate::mask) g = element.bits >> i & 1 ? g : 0;
            result.lane[i] = g;
        }
        return result;
    }
    /// Returns gradient(). With Gate::mask it is first rounded to T and stored for the next kernel.
    __device__ Pack<kWidth> gradient_for_sums(std::int64_t pixel, const Element& element,
                                              const Pack<kWidth>& x) const {
        Pack<kWidth> g = gradient(element, x);
        if constexpr (kGate == Gate::mask) {
            for (float& lane : g.lane) lane = to_float(from_float<T>(lane));
            store(tensors_.stored_gradient + at(pixel), g);
        }
        return g;
    }

private:
    const GradientTensors<T>& tensors_;
    std::int64_t base_, channels_;
    Pack<kWidth> scale_, shift_;
};

/// dx = a g + b x + c.
struct Coefficients {
    double a, b, c;
};

/// `sums` are the sums of g and of g * xhat over `count` pixels; `inverse` is 1 / deviation.
__device__ inline Coefficients coefficients_of(const Sums& sums, float gamma, double inverse,
                                               float mean, double count) {
    const double a = gamma * inverse;
    const double b = -a * inverse * sums.second / count;
    return {a, b, -a * sums.first / count - b * mean};
}

/// Computes dx for kWidth channels; `coefficients` (3, all) points to the first of these channels.
template <int kWidth>
class InputGradient {
public:
    __device__ InputGradient(const float* coefficients, std::int64_t all)
        : a_(load<kWidth>(coefficients)),
          b_(load<kWidth>(coefficients + all)),
          c_(load<kWidth>(coefficients + 2 * all)) {}

    __device__ Pack<kWidth> operator()(const Pack<kWidth>& g, const Pack<kWidth>& x) const {
        Pack<kWidth> dx;
        for (int i = 0; i < kWidth; ++i) {
            dx.lane[i] = fmaf(a_.lane[i], g.lane[i], fmaf(b_.lane[i], x.lane[i], c_.lane[i]));
        }
        return dx;
    }

private:
    Pack<kWidth> a_, b_, c_;
};

struct ChannelGradients {
    const float *gamma, *mean, *inverse_deviation;
    float *gamma_gradient, *beta_gradient;
    int product_index = 1;  // of the partial sum of g * (x - mean); the sum of g has index 0
};

/// Combines the partial sums, and writes the coefficients (3, spans, C) and the gradients of gamma
/// and beta. The grid must be final_grid().
template <int kSums = 2>
__device__ void combine_gradients(const Tiling& tiling, int spans, const ChannelGradients& norm,
                                  const float* workspace, float* coefficients) {
    const int channel = final_channel();
    const bool writes = threadIdx.x < kFinalChannels && channel < tiling.channels;
    const auto count = static_cast<double>(tiling.pixels);
    const std::int64_t all = static_cast<std::int64_t>(spans) * tiling.channels;
    double gamma_gradient = 0, beta_gradient = 0;
    for (int span = 0; span < spans; ++span) {
        const Sums sums = combine_partials<kSums>(tiling, span, workspace, norm.product_index);
        if (!writes) continue;
        const std::int64_t index = static_cast<std::int64_t>(span) * tiling.channels + channel;
        const double inverse = norm.inverse_deviation[index];
        const double products = sums.second * inverse;
        const auto [a, b, c] = coefficients_of({sums.first, products}, norm.gamma[channel], inverse,
                                               norm.mean[index], count);
        coefficients[index] = static_cast<float>(a);
        coefficients[all + index] = static_cast<float>(b);
        coefficients[2 * all + index] = static_cast<float>(c);
        gamma_gradient += products;
        beta_gradient += sums.first;
    }
    if (!writes) return;
    norm.gamma_gradient[channel] = static_cast<float>(gamma_gradient);
    norm.beta_gradient[channel] = static_cast<float>(beta_gradient);
}

}  // namespace hpcai::kernels::batch_norm
