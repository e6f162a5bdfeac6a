// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/reference/naive_ops.hpp>

/// Convolutions of int8 operands as plain loops (src/device/cpu/int8_convolution.hpp has the
/// definitions). Rounding steps and rounded values are computed in fp32; the sums are of integers.
namespace hpcai::naive {

/// Numbers as multiples of rounding steps.
struct Rounded {
    Tensor values;            // integers from -127 to 127
    std::vector<float> step;  // of each number
};

inline float step_of(float largest) {
    return std::max(largest / 127.0f, std::numeric_limits<float>::min());
}

/// Returns x / step before rounding.
inline float in_steps(double x, float step) {
    return static_cast<float>(x) * (1 / step);
}

inline double to_int8(float value) {
    return std::clamp(std::nearbyint(value), -127.0f, 127.0f);
}

/// Returns each number's step; numbers with equal group_of(index), below `groups`, share a step.
template <typename GroupOf>
std::vector<float> steps_of(const Tensor& x, std::int64_t groups, const GroupOf& group_of) {
    std::vector<float> largest(static_cast<std::size_t>(groups));
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
        float& maximum = largest[static_cast<std::size_t>(group_of(i))];
        maximum = std::max(maximum, std::abs(static_cast<float>(x[i])));
    }
    std::vector<float> steps;
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
        steps.push_back(step_of(largest[static_cast<std::size_t>(group_of(i))]));
    }
    return steps;
}

template <typename GroupOf>
Rounded round_to_nearest(const Tensor& x, std::int64_t groups, const GroupOf& group_of) {
    Rounded rounded{x, steps_of(x, groups, group_of)};
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
        rounded.values[i] = to_int8(in_steps(x[i], rounded.step[static_cast<std::size_t>(i)]));
    }
    return rounded;
}

/// The training step and the micro-batch for which random rounding is drawn.
struct StepPosition {
    std::uint32_t training_step = 0, micro_batch = 0;
};

/// Returns the 16 random bits for pixel p and channel c of image n of (N, H, W, C). A Philox block
/// serves 8 numbers (cpu::Dither has their order). The blocks of samples follow each other over all
/// micro-batches. Samples with the same first counter word have at most 2^32 blocks in total.
inline std::uint32_t random_bits(const Shape& shape, std::array<std::int64_t, 3> npc,
                                 const device::RoundingKey& key, const StepPosition& position) {
    const auto [n, p, c] = npc;
    const std::int64_t groups = (shape[1] * shape[2] + 7) / 8;  // of 8 pixels with 16 channels
    const std::int64_t element = p % 8 * 16 + c % 16;
    const std::int64_t block = (c / 16 * groups + p / 8) * 16 + element % 16;
    const std::int64_t sample_blocks = shape[3] / 16 * groups * 16;
    const std::int64_t sample = position.micro_batch * shape[0] + n;
    const std::int64_t samples_per_word = (std::int64_t{1} << 32) / sample_blocks;
    const auto words = philox4x32(
        {static_cast<std::uint32_t>(RandomPurpose::rounding) << 24 |
             static_cast<std::uint32_t>(sample / samples_per_word) << 16 | key.node,
         static_cast<std::uint32_t>(sample % samples_per_word * sample_blocks + block),
         position.training_step, key.model << 16 | key.rank},
        {static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)});
    return words[static_cast<std::size_t>(element / 32)] >> (element / 16 % 2 * 16) & 0xffff;
}

inline std::int64_t elements_of_sample(const Tensor& x) {
    return x.shape.elements() / x.shape[0];
}

/// Rounds samples to the nearest multiple of each sample's step.
inline Rounded round_samples(const Tensor& x) {
    return round_to_nearest(x, x.shape[0], [&](auto i) { return i / elements_of_sample(x); });
}

/// Rounds gradients up or down at random, with a step for each sample.
inline Rounded round_stochastically(const Tensor& x, const device::RoundingKey& key,
                                    const StepPosition& position) {
    Rounded rounded{x, steps_of(x, x.shape[0], [&](auto i) { return i / elements_of_sample(x); })};
    for (std::int64_t i = 0; i < x.shape.elements(); ++i) {
        const std::int64_t c = i % x.shape[3], pixel = i / x.shape[3];
        const std::int64_t pixels = x.shape[1] * x.shape[2];
        const std::uint32_t bits =
            random_bits(x.shape, {pixel / pixels, pixel % pixels, c}, key, position);
        const float shift = (static_cast<float>(bits) + 0.5f) / 65536 - 0.5f;
        rounded.values[i] =
            to_int8(in_steps(x[i], rounded.step[static_cast<std::size_t>(i)]) + shift);
    }
    return rounded;
}

/// Output and input gradient of a convolution of rounded operands. The gradient of the filters,
/// which solve() computes, uses the exact operands.
struct Int8Solution {
    Tensor output, input_gradient;
};

inline Int8Solution solve_int8(const ops::Convolution& op, const Problem& problem,
                               const device::RoundingKey& key, const StepPosition& position) {
    const Tensor &x = problem.inputs[0], &dy = problem.output_gradients[0];
    const Tensor& filters = problem.parameters[0];
    const std::int64_t channels = op.input[3], filter_elements = op.kernel * op.kernel * channels;
    const Rounded qx = round_samples(x), qdy = round_stochastically(dy, key, position);
    const Rounded by_filter =
        round_to_nearest(filters, op.filters, [&](auto i) { return i / filter_elements; });
    const Rounded by_channel =
        round_to_nearest(filters, channels, [&](auto i) { return i % channels; });
    Problem integers;
    integers.operation = op;
    integers.inputs = {qx.values};
    integers.parameters = {by_filter.values};
    Int8Solution solution;
    solution.output = solve(integers).output;
    integers.parameters = {by_channel.values};
    integers.output_gradients = {qdy.values};
    solution.input_gradient = solve(integers).input_gradients[0];
    const auto scale = [](Tensor& sums, const Rounded& image, const Rounded& weights,
                          auto index_of) {
        const std::int64_t of_result = elements_of_sample(sums);
        const std::int64_t of_image = elements_of_sample(image.values);
        for (std::int64_t i = 0; i < sums.shape.elements(); ++i) {
            const float image_step = image.step[static_cast<std::size_t>(i / of_result * of_image)];
            const float factor = image_step * weights.step[static_cast<std::size_t>(index_of(i))];
            sums[i] = static_cast<float>(sums[i]) * factor;
        }
    };
    scale(solution.output, qx, by_filter, [&](auto i) { return i % op.filters * filter_elements; });
    scale(solution.input_gradient, qdy, by_channel, [&](auto i) { return i % channels; });
    return solution;
}

}  // namespace hpcai::naive
