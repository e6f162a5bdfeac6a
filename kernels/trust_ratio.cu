// SPDX-License-Identifier: Apache-2.0
#include <reduce.cuh>

#include "moments.cuh"
#include "optimizer.hpp"

namespace hpcai::kernels {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::int64_t kMaxBlocks = 132 * 8;
constexpr int kUnit = 8;  // elements of a thread at once; parts begin at units

/// Sums of squares in fp64, where squares of fp32 numbers are exact. `others` are gradients or u.
struct Squares {
    double parameters = 0, others = 0;

    __device__ void add(float parameter, float other) {
        parameters += static_cast<double>(parameter) * parameter;
        others += static_cast<double>(other) * other;
    }
    /// All threads of the block call it; `part` belongs to the block.
    __device__ void store_total(const UpdateParts& parts, std::int64_t part) const {
        const double of_parameters = reduce_block(parameters, 0.0, Sum{});
        const double of_others = reduce_block(others, 0.0, Sum{});
        if (threadIdx.x != 0) return;
        parts.sums[part] = of_parameters;
        parts.sums[parts.count + part] = of_others;
    }
};

/// Calls `body.operator()<N>(at)` for this thread's share of the elements of `part`.
template <typename Body>
__device__ void over_units(const UpdatePart& part, const Body& body) {
    const std::int64_t step = static_cast<std::int64_t>(blockDim.x) * kUnit;
    for (std::int64_t at = part.begin + threadIdx.x * std::int64_t{kUnit}; at < part.end;
         at += step) {
        if (at + kUnit <= part.end) {
            body.template operator()<kUnit>(at);
        } else {
            for (std::int64_t one = at; one < part.end; ++one) body.template operator()<1>(one);
        }
    }
}

struct SumPack {
    const UpdateArguments& of;
    Squares& squares;

    template <int N>
    __device__ void operator()(std::int64_t at) const {
        const Pack<N> weight = load<N>(of.parameters + at), gradient = load<N>(of.gradients + at);
        for (int lane = 0; lane < N; ++lane) squares.add(weight.lane[lane], gradient.lane[lane]);
    }
};

__global__ void square_sums_kernel(UpdateArguments of, UpdateParts parts) {
    for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
        Squares squares;
        over_units(parts.parts[index], SumPack{of, squares});
        squares.store_total(parts, index);
    }
}

struct LambPack {
    const UpdateArguments& of;
    const Moments& by;
    float weight_decay;
    Squares& squares;

    template <int N>
    __device__ void operator()(std::int64_t at) const {
        const Pack<N> weight = load<N>(of.parameters + at), gradient = load<N>(of.gradients + at);
        Pack<N> mean = load<N>(of.states[0] + at), square = load<N>(of.states[1] + at);
        for (int lane = 0; lane < N; ++lane) {
            by.move(mean.lane[lane], square.lane[lane], by.gradient_factor * gradient.lane[lane]);
            const float move = fmaf(weight_decay, weight.lane[lane],
                                    by.direction(mean.lane[lane], square.lane[lane]));
            squares.add(weight.lane[lane], move);
        }
        store(of.states[0] + at, mean);
        store(of.states[1] + at, square);
    }
};

__global__ void lamb_moments_kernel(UpdateArguments of, ops::Lamb rule, UpdateParts parts) {
    if (of.numbers->finite == 0) return;
    __shared__ Moments numbers;
    if (threadIdx.x == 0) numbers.set(rule, *of.numbers);
    __syncthreads();
    const Moments by = numbers;
    for (std::int64_t index = blockIdx.x; index < parts.count; index += gridDim.x) {
        const UpdatePart part = parts.parts[index];
        const float weight_decay = of.ranges[part.range].decays ? of.weight_decay : 0.0f;
        Squares squares;
        over_units(part, LambPack{of, by, weight_decay, squares});
        squares.store_total(parts, index);
    }
}

/// The constants of the trust ratio, which LARS forms from |w| and |g|, and LAMB from |w| and |u|.
struct Ratio {
    bool of_gradients;
    float trust_coefficient, epsilon;
};

__global__ void ratios_kernel(UpdateArguments of, UpdateParts parts, Ratio ratio, float* ratios) {
    for (std::int64_t index = blockIdx.x; index < of.range_count; index += gridDim.x) {
        double parameters = 0, others = 0;
        for (std::int64_t part = parts.first_part[index] + threadIdx.x;
             part < parts.first_part[index + 1]; part += blockDim.x) {
            parameters += parts.sums[part];
            others += parts.sums[parts.count + part];
        }
        parameters = sqrt(reduce_block(parameters, 0.0, Sum{}));
        others = sqrt(reduce_block(others, 0.0, Sum{}));
        if (threadIdx.x != 0) continue;
        const UpdateRange range = of.ranges[index];
        ratios[index] = 1;
        if (!range.has_trust_ratio || !(parameters > 0 && others > 0)) continue;
        double divisor = others;
        if (ratio.of_gradients) {
            const double decay = range.decays ? of.weight_decay : 0.0f;
            divisor = of.numbers->gradient_factor * others + decay * parameters + ratio.epsilon;
        }
        ratios[index] = static_cast<float>(ratio.trust_coefficient * parameters / divisor);
    }
}

Grid grid_of_blocks(std::int64_t blocks, Stream stream) {
    return {.blocks_x = static_cast<unsigned>(std::clamp<std::int64_t>(blocks, 1, kMaxBlocks)),
            .threads = kThreads,
            .stream = stream};
}

}  // namespace

void square_sums(const UpdateArguments& arguments, const UpdateParts& parts, Stream stream) {
    launch(square_sums_kernel, grid_of_blocks(parts.count, stream), arguments, parts);
}

void lamb_moments(const UpdateArguments& arguments, const ops::Lamb& rule, const UpdateParts& parts,
                  Stream stream) {
    launch(lamb_moments_kernel, grid_of_blocks(parts.count, stream), arguments, rule, parts);
}

void lars_ratios(const UpdateArguments& arguments, const ops::Lars& rule, const UpdateParts& parts,
                 float* ratios, Stream stream) {
    launch(ratios_kernel, grid_of_blocks(arguments.range_count, stream), arguments, parts,
           Ratio{true, rule.trust_coefficient, rule.epsilon}, ratios);
}

void lamb_ratios(const UpdateArguments& arguments, const UpdateParts& parts, float* ratios,
                 Stream stream) {
    launch(ratios_kernel, grid_of_blocks(arguments.range_count, stream), arguments, parts,
           Ratio{false, 1, 0}, ratios);
}

}  // namespace hpcai::kernels
