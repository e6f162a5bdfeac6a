// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set, with square roots that do not set errno.
#include "loops.hpp"

namespace hpcai::device::cpu::HPCAI_ISA {

namespace {

/// Sums squares in separate lanes, which the compiler vectorizes.
class LaneSquares {
public:
    static constexpr std::size_t kLanes = 16;

    void add(std::size_t lane, float value) {
        const double wide = value;
        lanes_[lane] += wide * wide;
    }
    double total() const {
        double sum = 0;
        for (const double lane : lanes_) sum += lane;
        return sum;
    }

private:
    double lanes_[kLanes] = {};
};

inline void update_moments(const StepSpan& span, std::size_t i, const MomentCoefficients& c,
                           float weight) {
    const float gradient = c.gradient_decay * weight + c.gradient_factor * span.gradients[i];
    span.first_state[i] = c.beta1 * span.first_state[i] + c.one_minus_beta1 * gradient;
    span.second_state[i] = c.beta2 * span.second_state[i] + c.one_minus_beta2 * gradient * gradient;
}

inline float lamb_direction(const StepSpan& span, std::size_t i, const LambCoefficients& c) {
    const float root = c.root_scale * __builtin_sqrtf(span.second_state[i]);
    return c.weight_decay * span.parameters[i] +
           c.mean_scale * span.first_state[i] / (root + c.epsilon);
}

/// Calls `body(i, lane)` for all elements, in rows of lanes.
inline void for_each_lane(std::size_t length, const auto& body) {
    const std::size_t tail_begin = length / LaneSquares::kLanes * LaneSquares::kLanes;
    for (std::size_t i = 0; i < tail_begin; i += LaneSquares::kLanes) {
        for (std::size_t lane = 0; lane < LaneSquares::kLanes; ++lane) body(i + lane, lane);
    }
    for (std::size_t i = tail_begin; i < length; ++i) body(i, i - tail_begin);
}

void sgd(const StepSpan& span, const SgdCoefficients& c) {
    for (std::size_t i = 0; i < span.length; ++i) {
        // In this order an FMA rounds the sum only once if gradient_factor is 1.
        const float gradient =
            c.weight_decay * span.parameters[i] + c.gradient_factor * span.gradients[i];
        const float velocity = c.momentum * span.first_state[i] + gradient;
        span.first_state[i] = velocity;
        span.parameters[i] -=
            c.learning_rate * (c.nesterov ? gradient + c.momentum * velocity : velocity);
    }
}

void momentum_step(const StepSpan& span, const MomentumCoefficients& c) {
    for (std::size_t i = 0; i < span.length; ++i) {
        const float gradient =
            c.weight_decay * span.parameters[i] + c.gradient_factor * span.gradients[i];
        const float scaled = c.gradient_scale * gradient;
        const float velocity = c.momentum * span.first_state[i] + scaled;
        span.first_state[i] = velocity;
        span.parameters[i] -= c.rate * (c.nesterov ? scaled + c.momentum * velocity : velocity);
    }
}

void adam(const StepSpan& span, const AdamCoefficients& c) {
    for (std::size_t i = 0; i < span.length; ++i) {
        const float weight = c.decay_factor * span.parameters[i];
        update_moments(span, i, c.moments, weight);
        const float root = c.root_scale * __builtin_sqrtf(span.second_state[i]);
        span.parameters[i] = weight - c.rate * span.first_state[i] / (root + c.epsilon);
    }
}

void adagrad(const StepSpan& span, const AdaGradCoefficients& c) {
    for (std::size_t i = 0; i < span.length; ++i) {
        const float gradient =
            c.weight_decay * span.parameters[i] + c.gradient_factor * span.gradients[i];
        const float sum = span.first_state[i] + gradient * gradient;
        span.first_state[i] = sum;
        span.parameters[i] -= c.rate * gradient / (__builtin_sqrtf(sum) + c.epsilon);
    }
}

SquareSums square_sums(const StepSpan& span) {
    LaneSquares parameters, gradients;
    for_each_lane(span.length, [&](std::size_t i, std::size_t lane) {
        parameters.add(lane, span.parameters[i]);
        gradients.add(lane, span.gradients[i]);
    });
    return {parameters.total(), gradients.total()};
}

SquareSums lamb_moments(const StepSpan& span, const LambCoefficients& c) {
    LaneSquares parameters, directions;
    for_each_lane(span.length, [&](std::size_t i, std::size_t lane) {
        update_moments(span, i, c.moments, span.parameters[i]);
        parameters.add(lane, span.parameters[i]);
        directions.add(lane, lamb_direction(span, i, c));
    });
    return {parameters.total(), directions.total()};
}

void lamb_step(const StepSpan& span, const LambCoefficients& c, float rate) {
    for (std::size_t i = 0; i < span.length; ++i) {
        span.parameters[i] -= rate * lamb_direction(span, i, c);
    }
}

}  // namespace

void set_optimizer_loops(SimdKernels& table) {
    table.sgd = sgd;
    table.momentum_step = momentum_step;
    table.adam = adam;
    table.adagrad = adagrad;
    table.square_sums = square_sums;
    table.lamb_moments = lamb_moments;
    table.lamb_step = lamb_step;
}

}  // namespace hpcai::device::cpu::HPCAI_ISA
