// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// The tolerance of a result, relative to the largest number of the reference.
struct Tolerance {
    double stored = 0;      // of values and gradients in the compute type
    double fp32 = 0;        // of parameter gradients, losses, softmax and running statistics
    double filters = fp32;  // of gradients of filters
};

/// The tolerance of operations that round each stored number once: half of 2^-7 in bf16 or 2^-10 in
/// f16. An fp32 sum of up to some thousand terms has an error of about the square root of their
/// number times 2^-24.
inline Tolerance tolerance_of(tensor::DType compute) {
    if (compute == tensor::DType::f32) return {1e-6, 1e-6};
    return {compute == tensor::DType::f16 ? 5e-4 : 4e-3, 1e-6};
}

/// The tolerance of numbers that are rounded to the compute type several times.
inline Tolerance rounded(int times, const Tolerance& once) {
    return {times * once.stored, once.fp32, once.filters};
}

/// The tolerance of a GPU. cuDNN stores gradients of filters only in the type of the images, and
/// truncates factors to tf32, so each gradient has an error of up to 2^-10.
inline Tolerance gpu_tolerance_of(tensor::DType compute, bool tf32) {
    if (tf32) return {2e-3, 2e-3};
    Tolerance tolerance = tolerance_of(compute);
    tolerance.filters = tolerance.stored;
    return tolerance;
}

/// The tolerance of fused operations. A half type rounds the gradient of the ReLU's input, from
/// which two norms compute theirs. Sums of it have smaller errors than that, but larger ones than
/// fp32 sums.
inline Tolerance fused_tolerance_of(const Tolerance& once) {
    const double all = 4 * once.stored;
    return {all, all, all};
}

}  // namespace hpcai::device
