// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "optimizer.hpp"

namespace hpcai::kernels {
namespace {

__host__ __device__ inline bool is_finite(std::uint32_t bits) {
    return (bits & 0x7f800000u) != 0x7f800000u;
}

__global__ void check_finite_kernel(const std::uint32_t* bits, std::int64_t count,
                                    ops::StepScalars* scalars) {
    constexpr int kInFlight = 4;
    const std::int64_t quads = count / 4, stride = item_stride();
    bool all_finite = true;
    for (std::int64_t first = first_item(); first < quads; first += kInFlight * stride) {
        uint4 quad[kInFlight];
        for (int part = 0; part < kInFlight; ++part) {
            const std::int64_t at = first + part * stride;
            quad[part] = at < quads ? reinterpret_cast<const uint4*>(bits)[at] : uint4{0, 0, 0, 0};
        }
        for (int part = 0; part < kInFlight; ++part) {
            all_finite = all_finite && is_finite(quad[part].x) && is_finite(quad[part].y) &&
                         is_finite(quad[part].z) && is_finite(quad[part].w);
        }
    }
    for (std::int64_t at = quads * 4 + first_item(); at < count; at += stride) {
        all_finite = all_finite && is_finite(bits[at]);
    }
    if (!all_finite) scalars->finite = 0;  // all writers write the same value
}

__global__ void update_kernel(ops::LossScalePolicy policy, ops::StepScalars* step_scalars) {
    ops::StepScalars scalars = *step_scalars;
    if (scalars.finite != 0) {
        ++scalars.good_steps;
        ++scalars.taken_steps;
    } else {
        ++scalars.skipped_steps;
        scalars.good_steps = 0;
    }
    if (policy.dynamic && scalars.finite == 0) {
        const float half = scalars.loss_scale / 2;
        scalars.loss_scale = half < policy.min_scale ? policy.min_scale : half;
    }
    if (policy.dynamic && scalars.good_steps >= policy.good_steps_to_double) {
        scalars.good_steps = 0;
        const float twice = scalars.loss_scale * 2;
        if (twice <= policy.max_scale) scalars.loss_scale = twice;
    }
    scalars.gradient_factor = policy.loss_weight / scalars.loss_scale;
    scalars.finite = 1;
    *step_scalars = scalars;
}

}  // namespace

void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* scalars,
                  Stream stream) {
    launch(check_finite_kernel, grid_over(divide_up(count, 4), stream),
           reinterpret_cast<const std::uint32_t*>(gradients), count, scalars);
}

void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* scalars,
                       Stream stream) {
    launch(update_kernel, {.threads = 1, .stream = stream}, policy, scalars);
}

}  // namespace hpcai::kernels
