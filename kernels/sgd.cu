// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "sgd.hpp"

namespace hpcai::kernels {
namespace {

constexpr int kUnit = 8;  // elements a thread takes at once; a range begins with a new unit

/// What the step of one element depends on.
struct Coefficients {
    float learning_rate, gradient_factor, momentum, weight_decay;
    bool nesterov;
};

__host__ __device__ inline void step_element(float& weight, float gradient, float& velocity,
                                             const Coefficients& by) {
    const float g = fmaf(by.weight_decay, weight, by.gradient_factor * gradient);
    velocity = fmaf(by.momentum, velocity, g);
    const float move = by.nesterov ? fmaf(by.momentum, velocity, g) : velocity;
    weight = fmaf(-by.learning_rate, move, weight);
}

/// The range that holds element `at`, else one that begins behind it or has ended before.
__device__ inline SgdRange range_of(const SgdArguments& of, std::int64_t at) {
    if (of.range_count == 0) return {0, of.count};
    std::int64_t low = 0, high = of.range_count;  // the last that begins at or before `at`
    while (high - low > 1) {
        const std::int64_t middle = (low + high) / 2;
        (of.ranges[middle].begin <= at ? low : high) = middle;
    }
    return of.ranges[low];
}

template <int N, typename T>
__device__ void step_pack(const SgdArguments& of, const SgdRange& range, std::int64_t at,
                          const Coefficients& by) {
    Pack<N> weight = load<N>(of.parameters + at);
    const Pack<N> gradient = load<N>(of.gradients + at);
    Pack<N> velocity = load<N>(of.momentum_buffer + at);
    for (int lane = 0; lane < N; ++lane) {
        step_element(weight.lane[lane], gradient.lane[lane], velocity.lane[lane], by);
    }
    store(of.parameters + at, weight);
    store(of.momentum_buffer + at, velocity);
    if (range.working_copy == nullptr) return;
    store(static_cast<T*>(range.working_copy) + (at - range.begin), weight);
}

template <typename T>
__global__ void sgd_kernel(SgdArguments of) {
    if (of.numbers->finite == 0) return;
    Coefficients by{of.numbers->learning_rate, of.numbers->gradient_factor, of.momentum, 0,
                    of.nesterov};
    const std::int64_t units = (of.count + kUnit - 1) / kUnit;
    for (std::int64_t unit = first_item(); unit < units; unit += item_stride()) {
        const std::int64_t first = unit * kUnit;
        const SgdRange range = range_of(of, first);
        if (first < range.begin || first >= range.end) continue;
        by.weight_decay = range.decays ? of.weight_decay : 0.0f;
        if (first + kUnit <= range.end) {
            step_pack<kUnit, T>(of, range, first, by);
        } else {
            for (std::int64_t at = first; at < range.end; ++at) {
                step_pack<1, T>(of, range, at, by);
            }
        }
    }
}

}  // namespace

void sgd(const SgdArguments& arguments, Stream stream) {
    with_type(arguments.working_dtype, [&]<typename T>() {
        launch(sgd_kernel<T>, grid_over(divide_up(arguments.count, kUnit), stream), arguments);
    });
}

}  // namespace hpcai::kernels
