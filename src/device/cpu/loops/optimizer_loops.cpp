// SPDX-License-Identifier: Apache-2.0
// Compiled once per instruction set, with square roots that do not set errno.
#include "loops.hpp"

namespace hpcai::device::cpu::HPCAI_ISA {

namespace {

/// Sums in separate lanes, which the compiler vectorizes.
class Squares {
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

inline void move_means(const StepSpan& span, std::size_t i, const MomentCoefficients& by,
                       float weight) {
    const float gradient = by.gradient_decay * weight + by.gradient_factor * span.gradients[i];
    span.first[i] = by.beta1 * span.first[i] + by.rest1 * gradient;
    span.second[i] = by.beta2 * span.second[i] + by.rest2 * gradient * gradient;
}

inline float lamb_move(const StepSpan& span, std::size_t i, const LambCoefficients& by) {
    const float root = by.root_share * __builtin_sqrtf(span.second[i]);
    return by.weight_decay * span.parameters[i] +
           by.mean_share * span.first[i] / (root + by.epsilon);
}

/// Calls `body(i, lane)` for whole rows of lanes and then for the rest.
template <typename Body>
inline void over_lanes(std::size_t length, const Body& body) {
    const std::size_t whole = length / Squares::kLanes * Squares::kLanes;
    for (std::size_t i = 0; i < whole; i += Squares::kLanes) {
        for (std::size_t lane = 0; lane < Squares::kLanes; ++lane) body(i + lane, lane);
    }
    for (std::size_t i = whole; i < length; ++i) body(i, i - whole);
}

void sgd(const StepSpan& span, const SgdCoefficients& by) {
    for (std::size_t i = 0; i < span.length; ++i) {
        // In this order an FMA fuses the product of the decay, so with a gradient_factor of 1 the
        // sum is rounded once.
        const float gradient =
            by.weight_decay * span.parameters[i] + by.gradient_factor * span.gradients[i];
        const float velocity = by.momentum * span.first[i] + gradient;
        span.first[i] = velocity;
        span.parameters[i] -=
            by.learning_rate * (by.nesterov ? gradient + by.momentum * velocity : velocity);
    }
}

void momentum_step(const StepSpan& span, const MomentumCoefficients& by) {
    for (std::size_t i = 0; i < span.length; ++i) {
        const float gradient =
            by.weight_decay * span.parameters[i] + by.gradient_factor * span.gradients[i];
        const float share = by.share * gradient;
        const float velocity = by.momentum * span.first[i] + share;
        span.first[i] = velocity;
        span.parameters[i] -= by.rate * (by.nesterov ? share + by.momentum * velocity : velocity);
    }
}

void adam(const StepSpan& span, const AdamCoefficients& by) {
    for (std::size_t i = 0; i < span.length; ++i) {
        const float weight = by.kept * span.parameters[i];
        move_means(span, i, by.moments, weight);
        const float root = by.root_share * __builtin_sqrtf(span.second[i]);
        span.parameters[i] = weight - by.rate * span.first[i] / (root + by.epsilon);
    }
}

void adagrad(const StepSpan& span, const AdaGradCoefficients& by) {
    for (std::size_t i = 0; i < span.length; ++i) {
        const float gradient =
            by.weight_decay * span.parameters[i] + by.gradient_factor * span.gradients[i];
        const float sum = span.first[i] + gradient * gradient;
        span.first[i] = sum;
        span.parameters[i] -= by.rate * gradient / (__builtin_sqrtf(sum) + by.epsilon);
    }
}

SquareSums square_sums(const StepSpan& span) {
    Squares parameters, gradients;
    over_lanes(span.length, [&](std::size_t i, std::size_t lane) {
        parameters.add(lane, span.parameters[i]);
        gradients.add(lane, span.gradients[i]);
    });
    return {parameters.total(), gradients.total()};
}

SquareSums lamb_moments(const StepSpan& span, const LambCoefficients& by) {
    Squares parameters, moves;
    over_lanes(span.length, [&](std::size_t i, std::size_t lane) {
        move_means(span, i, by.moments, span.parameters[i]);
        parameters.add(lane, span.parameters[i]);
        moves.add(lane, lamb_move(span, i, by));
    });
    return {parameters.total(), moves.total()};
}

void lamb_step(const StepSpan& span, const LambCoefficients& by, float rate) {
    for (std::size_t i = 0; i < span.length; ++i) {
        span.parameters[i] -= rate * lamb_move(span, i, by);
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
