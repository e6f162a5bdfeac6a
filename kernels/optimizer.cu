// SPDX-License-Identifier: Apache-2.0
#include "moments.cuh"
#include "optimizer.hpp"

namespace hpcai::kernels {
namespace {

constexpr int kUnit = 8;  // elements of a thread at once; ranges begin at units

/// The settings of a step for one range, besides the scalars of the step.
struct OfRange {
    float weight_decay;
    float trust_ratio;
    std::int64_t begin;
    void* working_copy;
};

// The rules. `Numbers` are the constants of one step, which each block computes once.

struct MomentumRule {
    static constexpr int kStates = 1;
    float momentum;
    bool nesterov;
    bool momentum_correction;

    struct Numbers {
        float gradient_factor;
        float share;  // of the gradient that enters the velocity
        float rate;   // of the velocity that enters the step
    };
    __device__ void read(const ops::StepScalars& from, Numbers& numbers) const {
        numbers.gradient_factor = from.gradient_factor;
        numbers.share = momentum_correction ? 1.0f : from.learning_rate;
        numbers.rate = momentum_correction ? from.learning_rate : 1.0f;
    }
    __device__ void step(float& weight, float gradient, float (&states)[2], const Numbers& by,
                         const OfRange& range) const {
        const float slope = fmaf(range.weight_decay, weight, by.gradient_factor * gradient);
        const float share = range.trust_ratio * by.share * slope;
        states[0] = fmaf(momentum, states[0], share);
        const float move = nesterov ? fmaf(momentum, states[0], share) : states[0];
        weight = fmaf(-by.rate, move, weight);
    }
};

struct AdamRule {
    static constexpr int kStates = 2;
    ops::Adam rule;

    struct Numbers {
        Moments moments;
        float rate;
    };
    __device__ void read(const ops::StepScalars& from, Numbers& numbers) const {
        numbers.moments.set(rule, from);
        numbers.rate = from.learning_rate;
    }
    __device__ void step(float& weight, float gradient, float (&states)[2], const Numbers& by,
                         const OfRange& range) const {
        float slope = by.moments.gradient_factor * gradient;
        if (rule.decoupled_decay) {
            weight = fmaf(-by.rate * range.weight_decay, weight, weight);
        } else {
            slope = fmaf(range.weight_decay, weight, slope);
        }
        by.moments.move(states[0], states[1], slope);
        weight = fmaf(-by.rate, by.moments.direction(states[0], states[1]), weight);
    }
};

struct LambRule {
    static constexpr int kStates = 2;
    ops::Lamb rule;

    using Numbers = AdamRule::Numbers;
    __device__ void read(const ops::StepScalars& from, Numbers& numbers) const {
        numbers.moments.set(rule, from);
        numbers.rate = from.learning_rate;
    }
    __device__ void step(float& weight, float, float (&states)[2], const Numbers& by,
                         const OfRange& range) const {
        const float move =
            fmaf(range.weight_decay, weight, by.moments.direction(states[0], states[1]));
        weight = fmaf(-by.rate * range.trust_ratio, move, weight);
    }
};

struct AdaGradRule {
    static constexpr int kStates = 1;
    float epsilon;

    struct Numbers {
        float gradient_factor;
        float rate;
    };
    __device__ void read(const ops::StepScalars& from, Numbers& numbers) const {
        numbers.gradient_factor = from.gradient_factor;
        numbers.rate = from.learning_rate;
    }
    __device__ void step(float& weight, float gradient, float (&states)[2], const Numbers& by,
                         const OfRange& range) const {
        const float slope = fmaf(range.weight_decay, weight, by.gradient_factor * gradient);
        states[0] = fmaf(slope, slope, states[0]);
        weight -= by.rate * slope / (sqrtf(states[0]) + epsilon);
    }
};

/// Binary search for the last range that begins at or before element `at`. It does not contain `at`
/// if no range does.
__device__ inline std::int64_t range_at(const UpdateArguments& of, std::int64_t at) {
    std::int64_t low = 0, high = of.range_count;
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (of.ranges[middle].begin <= at ? low : high) = middle;
    }
    return low;
}

template <int N, typename T, typename Rule>
__device__ void step_pack(const UpdateArguments& of, const Rule& rule, const OfRange& range,
                          const typename Rule::Numbers& by, std::int64_t at) {
    Pack<N> weight = load<N>(of.parameters + at);
    const Pack<N> gradient = load<N>(of.gradients + at);
    Pack<N> first = load<N>(of.states[0] + at), second{};
    if constexpr (Rule::kStates == 2) second = load<N>(of.states[1] + at);
    for (int lane = 0; lane < N; ++lane) {
        float states[2] = {first.lane[lane], second.lane[lane]};
        rule.step(weight.lane[lane], gradient.lane[lane], states, by, range);
        if (of.rounds_parameters) weight.lane[lane] = to_float(from_float<T>(weight.lane[lane]));
        first.lane[lane] = states[0];
        second.lane[lane] = states[1];
    }
    store(of.parameters + at, weight);
    if constexpr (!std::is_same_v<Rule, LambRule>) {
        store(of.states[0] + at, first);
        if constexpr (Rule::kStates == 2) store(of.states[1] + at, second);
    }
    if (range.working_copy == nullptr) return;
    store(static_cast<T*>(range.working_copy) + (at - range.begin), weight);
}

template <typename T, typename Rule>
__global__ void update_kernel(UpdateArguments of, Rule rule) {
    if (of.numbers->finite == 0) return;
    __shared__ typename Rule::Numbers numbers;
    if (threadIdx.x == 0) rule.read(*of.numbers, numbers);
    __syncthreads();
    const typename Rule::Numbers by = numbers;
    const std::int64_t units = (of.count + kUnit - 1) / kUnit;
    for (std::int64_t unit = first_item(); unit < units; unit += item_stride()) {
        const std::int64_t first = unit * kUnit;
        const bool is_whole = of.range_count == 0;
        const std::int64_t index = is_whole ? 0 : range_at(of, first);
        const UpdateRange range = is_whole ? UpdateRange{0, of.count} : of.ranges[index];
        if (first < range.begin || first >= range.end) continue;
        const OfRange of_range{range.decays ? of.weight_decay : 0.0f,
                               of.trust_ratios == nullptr ? 1.0f : of.trust_ratios[index],
                               range.begin, range.working_copy};
        if (first + kUnit <= range.end) {
            step_pack<kUnit, T>(of, rule, of_range, by, first);
        } else {
            for (std::int64_t at = first; at < range.end; ++at) {
                step_pack<1, T>(of, rule, of_range, by, at);
            }
        }
    }
}

template <typename Rule>
void update(const UpdateArguments& arguments, const Rule& rule, Stream stream) {
    with_type(arguments.working_dtype, [&]<typename T>() {
        launch(update_kernel<T, Rule>, grid_over(divide_up(arguments.count, kUnit), stream),
               arguments, rule);
    });
}

}  // namespace

void sgd_step(const UpdateArguments& arguments, const ops::Sgd& rule, Stream stream) {
    update(arguments, MomentumRule{rule.momentum, rule.nesterov, rule.momentum_correction}, stream);
}

void lars_step(const UpdateArguments& arguments, const ops::Lars& rule, Stream stream) {
    update(arguments, MomentumRule{rule.momentum, rule.nesterov, rule.momentum_correction}, stream);
}

void adam_step(const UpdateArguments& arguments, const ops::Adam& rule, Stream stream) {
    update(arguments, AdamRule{rule}, stream);
}

void adagrad_step(const UpdateArguments& arguments, const ops::AdaGrad& rule, Stream stream) {
    update(arguments, AdaGradRule{rule.epsilon}, stream);
}

void lamb_step(const UpdateArguments& arguments, const ops::Lamb& rule, Stream stream) {
    update(arguments, LambRule{rule}, stream);
}

}  // namespace hpcai::kernels
