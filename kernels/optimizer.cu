// SPDX-License-Identifier: Apache-2.0
#include "optimizer.hpp"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

// Elements per thread and iteration; ranges and parts begin at multiples of it.
constexpr int kUnit = 8;

/// The settings of a step for one range, in addition to the scalars of the step.
struct RangeSettings {
    float weight_decay;
    float trust_ratio;
    std::int64_t begin;
    void* working_copy;
};

/// The constants of one step of Adam or LAMB; without defaults, because shared memory allows none.
struct AdamConstants {
    float gradient_factor;
    float beta1, one_minus_beta1;
    float beta2, one_minus_beta2;
    float mean_correction;  // 1 / (1 - beta1^t)
    float root_correction;  // 1 / sqrt(1 - beta2^t)
    float epsilon;
    float rate;

    /// Uses fp64, because 1 - beta^t of the first steps is too inexact in fp32.
    template <typename Rule>
    __device__ void set(const Rule& rule, const ops::StepScalars& scalars) {
        const double step = static_cast<double>(scalars.taken_steps) + 1;
        gradient_factor = scalars.gradient_factor;
        beta1 = static_cast<float>(rule.beta1);
        one_minus_beta1 = static_cast<float>(1 - rule.beta1);
        beta2 = static_cast<float>(rule.beta2);
        one_minus_beta2 = static_cast<float>(1 - rule.beta2);
        mean_correction = static_cast<float>(1 / (1 - pow(rule.beta1, step)));
        root_correction = static_cast<float>(1 / sqrt(1 - pow(rule.beta2, step)));
        epsilon = static_cast<float>(rule.epsilon);
        rate = scalars.learning_rate;
    }

    __device__ void update(float& mean, float& square, float gradient) const {
        mean = fmaf(beta1, mean, one_minus_beta1 * gradient);
        square = fmaf(beta2, square, one_minus_beta2 * gradient * gradient);
    }
    __device__ float direction(float mean, float square) const {
        return mean_correction * mean / (root_correction * sqrtf(square) + epsilon);
    }
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

    using Constants = AdamConstants;
    __device__ void read(const ops::StepScalars& from, Constants& constants) const {
        constants.set(rule, from);
    }
    __device__ void step(float& weight, float gradient, float (&states)[2],
                         const Constants& constants, const RangeSettings& range) const {
        float slope = constants.gradient_factor * gradient;
        if (rule.decoupled_decay) {
            weight = fmaf(-constants.rate * range.weight_decay, weight, weight);
        } else {
            slope = fmaf(range.weight_decay, weight, slope);
        }
        constants.update(states[0], states[1], slope);
        weight = fmaf(-constants.rate, constants.direction(states[0], states[1]), weight);
    }
};

struct LambRule {
    static constexpr int kStates = 2;
    ops::Lamb rule;

    using Constants = AdamConstants;
    __device__ void read(const ops::StepScalars& from, Constants& constants) const {
        constants.set(rule, from);
    }
    __device__ void step(float& weight, float, float (&states)[2], const Constants& constants,
                         const RangeSettings& range) const {
        const float direction =
            fmaf(range.weight_decay, weight, constants.direction(states[0], states[1]));
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

/// Returns the index of the last range that begins at or before element `at`, 0 if there is none.
/// The range may end before `at`.
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

/// Sums of exact squares, in fp64. `others` are gradients (LARS) or u (LAMB).
struct Squares {
    double parameters = 0, others = 0;

    __device__ void add(float parameter, float other) {
        parameters += static_cast<double>(parameter) * parameter;
        others += static_cast<double>(other) * other;
    }
    /// Stores the sums over the block for `part`. All threads of the block must call it.
    __device__ void store_total(const UpdateParts& parts, std::int64_t part) const {
        const double parameter_sum = reduce_block(parameters, 0.0, Sum{});
        const double other_sum = reduce_block(others, 0.0, Sum{});
        if (threadIdx.x != 0) return;
        parts.sums[part] = parameter_sum;
        parts.sums[parts.count + part] = other_sum;
    }
};

/// Calls `body.operator()<N>(at)` for this thread's elements of `part`, N of them from `at`.
template <typename Body>
__device__ void over_units(const UpdatePart& part, const Body& body) {
    const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * kUnit;
    for (std::int64_t at = part.begin + threadIdx.x * std::int64_t{kUnit}; at < part.end;
         at += step) {
        if (at + kUnit <= part.end) {
            body.template operator()<kUnit>(at);
        } else {
            for (std::int64_t i = at; i < part.end; ++i) body.template operator()<1>(i);
        }
    }
}

__global__ void square_sums_kernel(UpdateArguments args, UpdateParts parts) {
    for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
        Squares squares;
        over_units(parts.parts[index], [&]<int N>(std::int64_t at) {
            const Pack<N> weight = load<N>(args.parameters + at);
            const Pack<N> gradient = load<N>(args.gradients + at);
            for (int i = 0; i < N; ++i) squares.add(weight.lane[i], gradient.lane[i]);
        });
        squares.store_total(parts, index);
    }
}

__global__ void lamb_moments_kernel(UpdateArguments args, ops::Lamb rule, UpdateParts parts) {
    if (args.scalars->finite == 0) return;
    __shared__ AdamConstants shared;
    if (threadIdx.x == 0) shared.set(rule, *args.scalars);
    __syncthreads();
    const AdamConstants constants = shared;
    for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
        const UpdatePart part = parts.parts[index];
        const float weight_decay = args.ranges[part.range].decays ? args.weight_decay : 0.0f;
        Squares squares;
        over_units(part, [&]<int N>(std::int64_t at) {
            const Pack<N> weight = load<N>(args.parameters + at);
            const Pack<N> gradient = load<N>(args.gradients + at);
            Pack<N> mean = load<N>(args.states[0] + at), square = load<N>(args.states[1] + at);
            for (int i = 0; i < N; ++i) {
                constants.update(mean.lane[i], square.lane[i],
                                 constants.gradient_factor * gradient.lane[i]);
                const float direction = fmaf(weight_decay, weight.lane[i],
                                             constants.direction(mean.lane[i], square.lane[i]));
                squares.add(weight.lane[i], direction);
            }
            store(args.states[0] + at, mean);
            store(args.states[1] + at, square);
        });
        squares.store_total(parts, index);
    }
}

/// The constants of the trust ratio. LARS computes it from |w| and |g|, LAMB from |w| and |u|.
struct Ratio {
    bool is_lars;
    float trust_coefficient, epsilon;
};

__global__ void ratios_kernel(UpdateArguments args, UpdateParts parts, Ratio ratio, float* ratios) {
    for (std::int64_t index = blockIdx.x; index < args.range_count; index += gridDim.x) {
        double parameters = 0, others = 0;
        for (std::int64_t part = parts.first_part[index] + threadIdx.x;
             part < parts.first_part[index + 1]; part += blockDim.x) {
            parameters += parts.sums[part];
            others += parts.sums[parts.count + part];
        }
        parameters = sqrt(reduce_block(parameters, 0.0, Sum{}));
        others = sqrt(reduce_block(others, 0.0, Sum{}));
        if (threadIdx.x != 0) continue;
        const UpdateRange range = args.ranges[index];
        ratios[index] = 1;
        if (!range.has_trust_ratio || !(parameters > 0 && others > 0)) continue;
        double divisor = others;
        if (ratio.is_lars) {
            const double decay = range.decays ? args.weight_decay : 0.0f;
            divisor = args.scalars->gradient_factor * others + decay * parameters + ratio.epsilon;
        }
        ratios[index] = static_cast<float>(ratio.trust_coefficient * parameters / divisor);
    }
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

void square_sums(const UpdateArguments& arguments, const UpdateParts& parts, Stream stream) {
    launch(square_sums_kernel, blocks_over(parts.count, stream), arguments, parts);
}

void lamb_moments(const UpdateArguments& arguments, const ops::Lamb& rule, const UpdateParts& parts,
                  Stream stream) {
    launch(lamb_moments_kernel, blocks_over(parts.count, stream), arguments, rule, parts);
}

void lars_ratios(const UpdateArguments& arguments, const ops::Lars& rule, const UpdateParts& parts,
                 float* ratios, Stream stream) {
    launch(ratios_kernel, blocks_over(arguments.range_count, stream), arguments, parts,
           Ratio{true, rule.trust_coefficient, rule.epsilon}, ratios);
}

void lamb_ratios(const UpdateArguments& arguments, const UpdateParts& parts, float* ratios,
                 Stream stream) {
    launch(ratios_kernel, blocks_over(arguments.range_count, stream), arguments, parts,
           Ratio{false, 1, 0}, ratios);
}

}  // namespace hpcai::kernels
