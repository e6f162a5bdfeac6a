// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/step_scalars.hpp>

#include "elements.cuh"

namespace hpcai::kernels {

/// The constants of one step of Adam or LAMB; without defaults, because shared memory allows none.
struct Moments {
    float gradient_factor;
    float beta1, one_minus_beta1;
    float beta2, one_minus_beta2;
    float mean_correction;  // 1 / (1 - beta1^t)
    float root_correction;  // 1 / sqrt(1 - beta2^t)
    float epsilon;

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
    }

    __device__ void update(float& mean, float& square, float gradient) const {
        mean = fmaf(beta1, mean, one_minus_beta1 * gradient);
        square = fmaf(beta2, square, one_minus_beta2 * gradient * gradient);
    }
    __device__ float direction(float mean, float square) const {
        return mean_correction * mean / (root_correction * sqrtf(square) + epsilon);
    }
};

}  // namespace hpcai::kernels
