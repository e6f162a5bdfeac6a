// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <vector>

#include "kernels/group_norm.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels::reference {

/// Channels [first, end) of a sample that share their statistics.
struct Group {
    std::int64_t sample, first, end;
};

/// Calls body(group) for all groups, and for the channels that are only stored.
template <typename Body>
void for_each_group(const GroupNormShape& shape, const Body& body) {
    const std::int64_t per_group = shape.channels / shape.groups, stored = shape.spans.channels;
    for (std::int64_t sample = 0; sample < shape.spans.spans; ++sample) {
        for (std::int64_t first = 0; first < shape.channels; first += per_group) {
            body(Group{sample, first, first + per_group});
        }
        if (stored > shape.channels) body(Group{sample, shape.channels, stored});
    }
}

/// Calls body(channel, element, index in (samples, stored C)) for all elements of a group.
template <typename Body>
void for_each_element(const BatchNormShape& spans, const Group& group, const Body& body) {
    for (std::int64_t pixel = 0; pixel < spans.pixels; ++pixel) {
        for (std::int64_t channel = group.first; channel < group.end; ++channel) {
            body(channel, (group.sample * spans.pixels + pixel) * spans.channels + channel,
                 group.sample * spans.channels + channel);
        }
    }
}

inline double count_of(const BatchNormShape& spans, const Group& group) {
    return static_cast<double>(spans.pixels * (group.end - group.first));
}

inline void group_norm_statistics(const GroupNormShape& shape,
                                  const GroupNormStatisticsArguments& arguments, Stream) {
    const BatchNormShape& spans = shape.spans;
    for_each_group(shape, [&](const Group& group) {
        double mean = 0, variance = 0;
        const double count = count_of(spans, group);
        for_each_element(spans, group, [&](std::int64_t, std::int64_t element, std::int64_t) {
            mean += get(spans.dtype, arguments.x, element) / count;
        });
        for_each_element(spans, group, [&](std::int64_t, std::int64_t element, std::int64_t) {
            const double difference = get(spans.dtype, arguments.x, element) - mean;
            variance += difference * difference / count;
        });
        const double inverse = 1 / std::sqrt(variance + arguments.epsilon);
        for (std::int64_t channel = group.first; channel < group.end; ++channel) {
            const std::int64_t at = group.sample * spans.channels + channel;
            const bool real = channel < shape.channels;
            const double scale = real ? arguments.gamma[channel] * inverse : 0;
            const double beta = real ? arguments.beta[channel] : 0;
            arguments.statistics.scale[at] = static_cast<float>(scale);
            arguments.statistics.shift[at] = static_cast<float>(beta - mean * scale);
            arguments.statistics.mean[at] = static_cast<float>(mean);
            arguments.statistics.inverse_deviation[at] = static_cast<float>(inverse);
        }
    });
}

inline void group_norm_gradient_sums(const GroupNormShape& shape,
                                     const GroupNormGradientArguments& arguments, Stream) {
    const BatchNormShape& spans = shape.spans;
    const BatchNormStatistics& statistics = arguments.statistics;
    const std::int64_t all = spans.spans * spans.channels;
    std::vector<double> of_gamma(static_cast<std::size_t>(spans.channels)), of_beta = of_gamma;
    for_each_group(shape, [&](const Group& group) {
        double sum = 0, products = 0;
        for_each_element(
            spans, group, [&](std::int64_t channel, std::int64_t element, std::int64_t at) {
                const double x = get(spans.dtype, arguments.x, element);
                double g = get(spans.dtype, arguments.dy0, element);
                if (arguments.dy1 != nullptr) g += get(spans.dtype, arguments.dy1, element);
                if (arguments.relu && x * statistics.scale[at] + statistics.shift[at] <= 0) g = 0;
                const double xhat = (x - statistics.mean[at]) * statistics.inverse_deviation[at];
                const double gamma = channel < shape.channels ? arguments.gamma[channel] : 0;
                of_gamma[channel] += g * xhat;
                of_beta[channel] += g;
                sum += gamma * g;
                products += gamma * g * xhat;
            });
        for (std::int64_t channel = group.first; channel < group.end; ++channel) {
            const std::int64_t at = group.sample * spans.channels + channel;
            const double inverse = statistics.inverse_deviation[at], count = count_of(spans, group);
            const double by_input = -inverse * inverse * products / count;
            const double gamma = channel < shape.channels ? arguments.gamma[channel] : 0;
            arguments.coefficients[at] = static_cast<float>(gamma * inverse);
            arguments.coefficients[all + at] = static_cast<float>(by_input);
            arguments.coefficients[2 * all + at] =
                static_cast<float>(-inverse * sum / count - by_input * statistics.mean[at]);
        }
    });
    for (std::int64_t channel = 0; channel < shape.channels; ++channel) {
        const auto at = static_cast<std::size_t>(channel);
        arguments.gamma_gradient[channel] = static_cast<float>(of_gamma[at]);
        arguments.beta_gradient[channel] = static_cast<float>(of_beta[at]);
    }
}

}  // namespace hpcai::kernels::reference
