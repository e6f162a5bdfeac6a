// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/batch_norm.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

/// Calls body(element) for every pixel of a channel in one span.
template <typename Body>
void for_each_pixel(const BatchNormShape& shape, std::int64_t span, std::int64_t channel,
                    const Body& body) {
    const std::int64_t first = span * shape.pixels;
    for (std::int64_t pixel = first; pixel < first + shape.pixels; ++pixel) {
        body(pixel * shape.channels + channel);
    }
}

/// Calls body(span, channel, index in (spans, C)).
template <typename Body>
void for_each_channel(const BatchNormShape& shape, const Body& body) {
    for (std::int64_t span = 0; span < shape.spans; ++span) {
        for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
            body(span, channel, span * shape.channels + channel);
        }
    }
}

struct ChannelMoments {
    double mean = 0, variance = 0;  // biased
};

inline void write_affine(const BatchNormParameters& parameters,
                         const BatchNormStatistics& statistics, std::int64_t channel,
                         std::int64_t index, const ChannelMoments& moments) {
    const auto& [mean, variance] = moments;
    const double inverse = 1 / std::sqrt(variance + parameters.epsilon);
    const double scale = parameters.gamma[channel] * inverse;
    statistics.scale[index] = static_cast<float>(scale);
    statistics.shift[index] = static_cast<float>(parameters.beta[channel] - mean * scale);
    if (statistics.mean == nullptr) return;
    statistics.mean[index] = static_cast<float>(mean);
    statistics.inverse_deviation[index] = static_cast<float>(inverse);
}

/// `moments(span, channel)` returns the moments of a span.
template <typename MomentsOf>
void write_statistics(const BatchNormShape& shape, const BatchNormParameters& parameters,
                      const BatchNormStatistics& statistics, const MomentsOf& moments) {
    const double count = static_cast<double>(shape.pixels);
    const double spans = static_cast<double>(shape.spans);
    const auto move = [&](float& running, double value) {
        running =
            static_cast<float>((1 - parameters.momentum) * running + parameters.momentum * value);
    };
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        double mean_sum = 0, variance_sum = 0;
        for (std::int64_t span = 0; span < shape.spans; ++span) {
            const ChannelMoments of_span = moments(span, channel);
            write_affine(parameters, statistics, channel, span * shape.channels + channel, of_span);
            mean_sum += of_span.mean;
            variance_sum += of_span.variance * count / std::max(count - 1, 1.0);
        }
        move(parameters.running_mean[channel], mean_sum / spans);
        move(parameters.running_variance[channel], variance_sum / spans);
    }
}

inline ChannelMoments moments_of(const BatchNormShape& shape, const void* x, std::int64_t span,
                                 std::int64_t channel) {
    const double count = static_cast<double>(shape.pixels);
    ChannelMoments moments;
    for_each_pixel(shape, span, channel, [&](std::int64_t element) {
        moments.mean += get(shape.dtype, x, element) / count;
    });
    for_each_pixel(shape, span, channel, [&](std::int64_t element) {
        const double difference = get(shape.dtype, x, element) - moments.mean;
        moments.variance += difference * difference / count;
    });
    return moments;
}

/// Returns the output's gradient after ReLU.
inline double gradient_at(const BatchNormShape& shape, const BatchNormGradientArguments& of,
                          std::int64_t element, std::int64_t index) {
    double gradient = get(shape.dtype, of.dy0, element);
    if (of.dy1 != nullptr) gradient += get(shape.dtype, of.dy1, element);
    if (of.mask != nullptr) {
        return of.mask[element / 32] >> element % 32 & 1 ? gradient : 0;
    }
    const double y =
        get(shape.dtype, of.x, element) * of.statistics.scale[index] + of.statistics.shift[index];
    return of.relu && !(y > 0) ? 0 : gradient;
}

/// The coefficients a, b and c of dx = a g + b x + c are stored one after the other, (spans, C)
/// each.
inline float& coefficient(const BatchNormShape& shape, const BatchNormGradientArguments& of,
                          int which, std::int64_t index) {
    return static_cast<float*>(of.workspace)[which * shape.spans * shape.channels + index];
}

inline void batch_norm_statistics(const BatchNormShape& shape,
                                  const BatchNormStatisticsArguments& of, Stream) {
    const auto moments = [&](std::int64_t span, std::int64_t channel) {
        return moments_of(shape, of.x, span, channel);
    };
    write_statistics(shape, of.parameters, of.statistics, moments);
}

inline void batch_norm_moments(const BatchNormShape& shape, const BatchNormMomentsArguments& of,
                               Stream) {
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        const auto [mean, variance] = moments_of(shape, of.x, 0, channel);
        of.moments[channel] = mean;
        of.moments[shape.channels + channel] = variance + mean * mean;
    }
}

inline void batch_norm_statistics_from_moments(const BatchNormShape& shape,
                                               const BatchNormSharedMomentsArguments& of, Stream) {
    BatchNormShape all = shape;
    all.pixels *= of.ranks;
    const auto moments = [&](std::int64_t, std::int64_t channel) {
        const double mean = of.moments[channel] / of.ranks;
        const double square = of.moments[shape.channels + channel] / of.ranks;
        return ChannelMoments{mean, std::max(square - mean * mean, 0.0)};
    };
    write_statistics(all, of.parameters, of.statistics, moments);
}

inline void batch_norm_statistics_from_sums(const BatchNormShape& shape,
                                            const BatchNormSumsArguments& of, Stream) {
    const double count = static_cast<double>(shape.pixels);
    const auto moments = [&](std::int64_t span, std::int64_t channel) {
        const std::int64_t index = span * shape.channels + channel;
        const double mean = of.sum[index] / count;
        return ChannelMoments{mean, std::max(of.squares[index] / count - mean * mean, 0.0)};
    };
    write_statistics(shape, of.parameters, of.statistics, moments);
}

inline void batch_norm_running_statistics(std::int64_t channels,
                                          const BatchNormParameters& parameters,
                                          const BatchNormStatistics& statistics, Stream) {
    for (std::int64_t channel = 0; channel < channels; ++channel) {
        write_affine(parameters, {nullptr, nullptr, statistics.scale, statistics.shift}, channel,
                     channel,
                     {parameters.running_mean[channel], parameters.running_variance[channel]});
    }
}

inline void batch_norm_apply(const BatchNormShape& shape, const BatchNormApplyArguments& of,
                             Stream) {
    if (of.mask != nullptr) std::fill_n(of.mask, batch_norm_mask_bytes(shape) / 4, 0u);
    for_each_channel(shape, [&](std::int64_t span, std::int64_t channel, std::int64_t index) {
        for_each_pixel(shape, span, channel, [&](std::int64_t element) {
            double y = get(shape.dtype, of.x, element) * of.scale[index] + of.shift[index];
            if (of.residual != nullptr) {
                const double r = get(shape.dtype, of.residual, element);
                y += of.residual_scale == nullptr
                         ? r
                         : r * of.residual_scale[index] + of.residual_shift[index];
            }
            if (of.mask != nullptr && y > 0) of.mask[element / 32] |= 1u << element % 32;
            put(shape.dtype, of.y, element, of.relu && y < 0 ? 0 : y);
        });
    });
}

inline void batch_norm_gradient_sums(const BatchNormShape& shape,
                                     const BatchNormGradientArguments& of, Stream) {
    const double count = static_cast<double>(shape.pixels);
    std::fill_n(of.gamma_gradient, shape.channels, 0.0f);
    std::fill_n(of.beta_gradient, shape.channels, 0.0f);
    for_each_channel(shape, [&](std::int64_t span, std::int64_t channel, std::int64_t index) {
        const double mean = of.statistics.mean[index];
        const double inverse = of.statistics.inverse_deviation[index];
        double sum = 0, products = 0;
        for_each_pixel(shape, span, channel, [&](std::int64_t element) {
            double g = gradient_at(shape, of, element, index);
            if (of.mask != nullptr) {
                put(shape.dtype, of.residual_gradient, element, g);
                g = get(shape.dtype, of.residual_gradient, element);
            }
            sum += g;
            products += g * (get(shape.dtype, of.x, element) - mean) * inverse;
        });
        const double a = of.gamma[channel] * inverse, b = -a * inverse * products / count;
        coefficient(shape, of, 0, index) = static_cast<float>(a);
        coefficient(shape, of, 1, index) = static_cast<float>(b);
        coefficient(shape, of, 2, index) = static_cast<float>(-a * sum / count - b * mean);
        of.gamma_gradient[channel] += static_cast<float>(products);
        of.beta_gradient[channel] += static_cast<float>(sum);
    });
}

inline void batch_norm_gradient_coefficients(const BatchNormShape& shape,
                                             const BatchNormCoefficientsArguments& of, Stream) {
    const double count = static_cast<double>(of.ranks) * static_cast<double>(shape.pixels);
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        const double products = of.sums[channel], sum = of.sums[shape.channels + channel];
        const double inverse = of.statistics.inverse_deviation[channel];
        const double a = of.gamma[channel] * inverse, b = -a * inverse * products / count;
        of.coefficients[channel] = static_cast<float>(a);
        of.coefficients[shape.channels + channel] = static_cast<float>(b);
        of.coefficients[2 * shape.channels + channel] =
            static_cast<float>(-a * sum / count - b * of.statistics.mean[channel]);
    }
}

inline void batch_norm_gradient_apply(const BatchNormShape& shape,
                                      const BatchNormGradientArguments& of, Stream) {
    const auto given = [&](int which, std::int64_t index) {
        return of.coefficients != nullptr
                   ? of.coefficients[which * shape.spans * shape.channels + index]
                   : coefficient(shape, of, which, index);
    };
    for_each_channel(shape, [&](std::int64_t span, std::int64_t channel, std::int64_t index) {
        for_each_pixel(shape, span, channel, [&](std::int64_t element) {
            const double g = of.mask != nullptr ? get(shape.dtype, of.residual_gradient, element)
                                                : gradient_at(shape, of, element, index);
            put(shape.dtype, of.dx, element,
                given(0, index) * g + given(1, index) * get(shape.dtype, of.x, element) +
                    given(2, index));
        });
    });
}

}  // namespace hpcai::kernels::reference
