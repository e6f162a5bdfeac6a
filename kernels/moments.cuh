// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/step_scalars.hpp>

#include "elements.cuh"

namespace hpcai::kernels {

/// The constants of one step of Adam or LAMB. No default values, because they are in shared memory.
struct Moments {
    float gradient_factor;
    float beta1, rest1;  // rest1 = 1 - beta1
    float beta2, rest2;
    float mean_share;  // 1 / (1 - beta1^t)
    float root_share;  // 1 / sqrt(1 - beta2^t)
    float epsilon;

    /// Computes in fp64, because fp32 is too inexact for 1 - beta^t of the first steps.
    template <typename Rule>
    __device__ void set(const Rule& rule, const ops::StepScalars& numbers) {
        const double step = static_cast<double>(numbers.taken_steps) + 1;
        gradient_factor = numbers.gradient_factor;
        beta1 = static_cast<float>(rule.beta1);
        rest1 = static_cast<float>(1 - rule.beta1);
        beta2 = static_cast<float>(rule.beta2);
        rest2 = static_cast<float>(1 - rule.beta2);
        mean_share = static_cast<float>(1 / (1 - pow(rule.beta1, step)));
        root_share = static_cast<float>(1 / sqrt(1 - pow(rule.beta2, step)));
        epsilon = static_cast<float>(rule.epsilon);
    }

    __device__ void move(float& mean, float& square, float gradient) const {
        mean = fmaf(beta1, mean, rest1 * gradient);
        square = fmaf(beta2, square, rest2 * gradient * gradient);
    }
    __device__ float direction(float mean, float square) const {
        return mean_share * mean / (root_share * sqrtf(square) + epsilon);
    }
};

}  // namespace hpcai::kernels
