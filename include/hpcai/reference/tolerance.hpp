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

/// The tolerance of operations that round each stored number once: by up to 2^-8 in bf16 and 2^-11
/// in f16. An fp32 sum of n terms has an error of about sqrt(n) * 2^-24: 1e-6 for n = 280.
inline Tolerance tolerance_of(tensor::DType compute) {
    if (compute == tensor::DType::f32) return {1e-6, 1e-6};
    return {compute == tensor::DType::f16 ? 5e-4 : 4e-3, 1e-6};
}

/// The tolerance of numbers that are rounded to the compute type several times.
inline Tolerance rounded(int times, const Tolerance& once) {
    return {times * once.stored, once.fp32, once.filters};
}

/// The tolerance of a GPU. cuDNN stores gradients of filters only in the type of the images. With
/// tf32 it truncates both operands of a product, each with an error of up to 2^-10.
inline Tolerance gpu_tolerance_of(tensor::DType compute, bool tf32) {
    if (tf32) return {2e-3, 2e-3};
    Tolerance tolerance = tolerance_of(compute);
    tolerance.filters = tolerance.stored;
    return tolerance;
}

/// The tolerance of fused operations, which round intermediate results to the compute type, such as
/// the gradient of the ReLU's input that both norms of a DualNorm read. Sums of such numbers have
/// smaller errors than the numbers, but larger ones than sums of fp32 numbers.
inline Tolerance fused_tolerance_of(const Tolerance& once) {
    const double all = 4 * once.stored;
    return {all, all, all};
}

}  // namespace hpcai::device
