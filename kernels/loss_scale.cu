// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "optimizer.hpp"

namespace hpcai::kernels {
namespace {

__host__ __device__ inline bool finite(std::uint32_t bits) {
    return (bits & 0x7f800000u) != 0x7f800000u;
}

__global__ void check_finite_kernel(const std::uint32_t* bits, std::int64_t count,
                                    ops::StepScalars* numbers) {
    constexpr int kInFlight = 4;
    const std::int64_t quads = count / 4, stride = item_stride();
    bool good = true;
    for (std::int64_t first = first_item(); first < quads; first += kInFlight * stride) {
        uint4 quad[kInFlight];
        for (int part = 0; part < kInFlight; ++part) {
            const std::int64_t at = first + part * stride;
            quad[part] = at < quads ? reinterpret_cast<const uint4*>(bits)[at] : uint4{0, 0, 0, 0};
        }
        for (int part = 0; part < kInFlight; ++part) {
            good = good && finite(quad[part].x) && finite(quad[part].y) && finite(quad[part].z) &&
                   finite(quad[part].w);
        }
    }
    for (std::int64_t at = quads * 4 + first_item(); at < count; at += stride) {
        good = good && finite(bits[at]);
    }
    if (!good) numbers->finite = 0;  // all writers write the same value
}

/// Computes the scalars of the next step.
__host__ __device__ inline ops::StepScalars next(const ops::LossScalePolicy& policy,
                                                 ops::StepScalars numbers) {
    if (numbers.finite != 0) {
        ++numbers.good_steps;
        ++numbers.taken_steps;
    } else {
        ++numbers.skipped_steps;
        numbers.good_steps = 0;
    }
    if (policy.dynamic && numbers.finite == 0) {
        const float half = numbers.loss_scale / 2;
        numbers.loss_scale = half < policy.min_scale ? policy.min_scale : half;
    }
    if (policy.dynamic && numbers.good_steps >= policy.good_steps_to_double) {
        numbers.good_steps = 0;
        const float twice = numbers.loss_scale * 2;
        if (twice <= policy.max_scale) numbers.loss_scale = twice;
    }
    numbers.gradient_factor = policy.loss_weight / numbers.loss_scale;
    numbers.finite = 1;
    return numbers;
}

__global__ void update_kernel(ops::LossScalePolicy policy, ops::StepScalars* numbers) {
    *numbers = next(policy, *numbers);
}

}  // namespace

void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* numbers,
                  Stream stream) {
    launch(check_finite_kernel, grid_over(divide_up(count, 4), stream),
           reinterpret_cast<const std::uint32_t*>(gradients), count, numbers);
}

void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* numbers,
                       Stream stream) {
    launch(update_kernel, {.threads = 1, .stream = stream}, policy, numbers);
}

}  // namespace hpcai::kernels
