// SPDX-License-Identifier: Apache-2.0
#include "optimizer.hpp"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

constexpr int kUnit = 8;  // elements per thread and iteration; ranges begin at multiples of it

/// The settings of a step for one range, in addition to the scalars of the step.
struct RangeSettings {
    float weight_decay;
    float trust_ratio;
    std::int64_t begin;
    void* working_copy;
};

// The rules. Each block computes the `Constants` of a step once.

struct MomentumRule {
    static constexpr int kStates = 1;
    float momentum;
    bool nesterov;
    bool momentum_correction;

    struct Constants {
        float gradient_factor;
        float gradient_rate;  // factor of the gradient that is added to the velocity
        float velocity_rate;  // factor of the velocity in the step
    };
    __device__ void read(const ops::StepScalars& from, Constants& constants) const {
        constants.gradient_factor = from.gradient_factor;
        constants.gradient_rate = momentum_correction ? 1.0f : from.learning_rate;
        constants.velocity_rate = momentum_correction ? from.learning_rate : 1.0f;
    }
    __device__ void step(float& weight, float gradient, float (&states)[2],
                         const Constants& constants, const RangeSettings& range) const {
        const float slope = fmaf(range.weight_decay, weight, constants.gradient_factor * gradient);
        const float increment = range.trust_ratio * constants.gradient_rate * slope;
        states[0] = fmaf(momentum, states[0], increment);
        const float direction = nesterov ? fmaf(momentum, states[0], increment) : states[0];
        weight = fmaf(-constants.velocity_rate, direction, weight);
    }
};

struct AdamRule {
    static constexpr int kStates = 2;
    ops::Adam rule;

    struct Constants {
        Moments moments;
        float rate;
    };
    __device__ void read(const ops::StepScalars& from, Constants& constants) const {
        constants.moments.set(rule, from);
        constants.rate = from.learning_rate;
    }
    __device__ void step(float& weight, float gradient, float (&states)[2],
                         const Constants& constants, const RangeSettings& range) const {
        float slope = constants.moments.gradient_factor * gradient;
        if (rule.decoupled_decay) {
            weight = fmaf(-constants.rate * range.weight_decay, weight, weight);
        } else {
            slope = fmaf(range.weight_decay, weight, slope);
        }
        constants.moments.update(states[0], states[1], slope);
        weight = fmaf(-constants.rate, constants.moments.direction(states[0], states[1]), weight);
    }
};

struct LambRule {
    static constexpr int kStates = 2;
    ops::Lamb rule;

    using Constants = AdamRule::Constants;
    __device__ void read(const ops::StepScalars& from, Constants& constants) const {
        constants.moments.set(rule, from);
        constants.rate = from.learning_rate;
    }
    __device__ void step(float& weight, float, float (&states)[2], const Constants& constants,
                         const RangeSettings& range) const {
        const float direction =
            fmaf(range.weight_decay, weight, constants.moments.direction(states[0], states[1]));
        weight = fmaf(-constants.rate * range.trust_ratio, direction, weight);
    }
};

struct AdaGradRule {
    static constexpr int kStates = 1;
    float epsilon;

    struct Constants {
        float gradient_factor;
        float rate;
    };
    __device__ void read(const ops::StepScalars& from, Constants& constants) const {
        constants.gradient_factor = from.gradient_factor;
        constants.rate = from.learning_rate;
    }
    __device__ void step(float& weight, float gradient, float (&states)[2],
                         const Constants& constants, const RangeSettings& range) const {
        const float slope = fmaf(range.weight_decay, weight, constants.gradient_factor * gradient);
        states[0] = fmaf(slope, slope, states[0]);
        weight -= constants.rate * slope / (sqrtf(states[0]) + epsilon);
    }
};

/// Returns the index of the last range that begins at or before element `at`, by binary search.
/// The range does not contain `at` if no range does.
__device__ inline std::int64_t range_at(const UpdateArguments& args, std::int64_t at) {
    std::int64_t low = 0, high = args.range_count;
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (args.ranges[middle].begin <= at ? low : high) = middle;
    }
    return low;
}

template <int N, typename T, typename Rule>
__device__ void step_pack(const UpdateArguments& args, const Rule& rule, const RangeSettings& range,
                          const typename Rule::Constants& constants, std::int64_t at) {
    Pack<N> weight = load<N>(args.parameters + at);
    const Pack<N> gradient = load<N>(args.gradients + at);
    Pack<N> first = load<N>(args.states[0] + at), second{};
    if constexpr (Rule::kStates == 2) second = load<N>(args.states[1] + at);
    for (int lane = 0; lane < N; ++lane) {
        float states[2] = {first.lane[lane], second.lane[lane]};
        rule.step(weight.lane[lane], gradient.lane[lane], states, constants, range);
        if (args.rounds_parameters) weight.lane[lane] = to_float(from_float<T>(weight.lane[lane]));
        first.lane[lane] = states[0];
        second.lane[lane] = states[1];
    }
    store(args.parameters + at, weight);
    if constexpr (!std::is_same_v<Rule, LambRule>) {
        store(args.states[0] + at, first);
        if constexpr (Rule::kStates == 2) store(args.states[1] + at, second);
    }
    if (range.working_copy == nullptr) return;
    store(static_cast<T*>(range.working_copy) + (at - range.begin), weight);
}

template <typename T, typename Rule>
__global__ void update_kernel(UpdateArguments args, Rule rule) {
    if (args.scalars->finite == 0) return;
    __shared__ typename Rule::Constants shared;
    if (threadIdx.x == 0) rule.read(*args.scalars, shared);
    __syncthreads();
    const typename Rule::Constants constants = shared;
    const std::int64_t units = (args.count + kUnit - 1) / kUnit;
    for (std::int64_t unit = first_item(); unit < units; unit += item_stride()) {
        const std::int64_t first = unit * kUnit;
        const bool is_single_range = args.range_count == 0;
        const std::int64_t index = is_single_range ? 0 : range_at(args, first);
        const UpdateRange range = is_single_range ? UpdateRange{0, args.count} : args.ranges[index];
        if (first < range.begin || first >= range.end) continue;
        const RangeSettings settings{range.decays ? args.weight_decay : 0.0f,
                                     args.trust_ratios == nullptr ? 1.0f : args.trust_ratios[index],
                                     range.begin, range.working_copy};
        if (first + kUnit <= range.end) {
            step_pack<kUnit, T>(args, rule, settings, constants, first);
        } else {
            for (std::int64_t at = first; at < range.end; ++at) {
                step_pack<1, T>(args, rule, settings, constants, at);
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
