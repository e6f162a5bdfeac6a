// SPDX-License-Identifier: Apache-2.0
#include "optimizer.hpp"
#include "reduce.cuh"

namespace hpcai::kernels {
namespace {

constexpr int kUnit = 8;  // elements per thread and iteration; parts begin at multiples of it

/// Sums of squares in fp64, where squares of fp32 numbers are exact. `others` are gradients or u.
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

struct SumPack {
    const UpdateArguments& args;
    Squares& squares;

    template <int N>
    __device__ void operator()(std::int64_t at) const {
        const Pack<N> weight = load<N>(args.parameters + at),
                      gradient = load<N>(args.gradients + at);
        for (int lane = 0; lane < N; ++lane) squares.add(weight.lane[lane], gradient.lane[lane]);
    }
};

__global__ void square_sums_kernel(UpdateArguments args, UpdateParts parts) {
    for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
        Squares squares;
        over_units(parts.parts[index], SumPack{args, squares});
        squares.store_total(parts, index);
    }
}

struct LambPack {
    const UpdateArguments& args;
    const Moments& moments;
    float weight_decay;
    Squares& squares;

    template <int N>
    __device__ void operator()(std::int64_t at) const {
        const Pack<N> weight = load<N>(args.parameters + at),
                      gradient = load<N>(args.gradients + at);
        Pack<N> mean = load<N>(args.states[0] + at), square = load<N>(args.states[1] + at);
        for (int lane = 0; lane < N; ++lane) {
            moments.update(mean.lane[lane], square.lane[lane],
                           moments.gradient_factor * gradient.lane[lane]);
            const float direction = fmaf(weight_decay, weight.lane[lane],
                                         moments.direction(mean.lane[lane], square.lane[lane]));
            squares.add(weight.lane[lane], direction);
        }
        store(args.states[0] + at, mean);
        store(args.states[1] + at, square);
    }
};

__global__ void lamb_moments_kernel(UpdateArguments args, ops::Lamb rule, UpdateParts parts) {
    if (args.scalars->finite == 0) return;
    __shared__ Moments shared;
    if (threadIdx.x == 0) shared.set(rule, *args.scalars);
    __syncthreads();
    const Moments moments = shared;
    for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
        const UpdatePart part = parts.parts[index];
        const float weight_decay = args.ranges[part.range].decays ? args.weight_decay : 0.0f;
        Squares squares;
        over_units(part, LambPack{args, moments, weight_decay, squares});
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
