// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Addition, ReLU and filling. Buffers have `count` elements of `dtype` (f32, f16 or bf16) and are
/// 16-byte aligned. Sums are fp32 and rounded once. A result may overwrite an operand.
namespace hpcai::kernels {

struct AddArguments {
    tensor::DType dtype = tensor::DType::f32;
    const void* a = nullptr;
    const void* b = nullptr;  // null: sum = a
    void* sum = nullptr;
    std::int64_t count = 0;
};
/// sum = a + b.
void add(const AddArguments& arguments, Stream stream);

/// y = max(x, 0); NaN stays NaN.
void relu(tensor::DType dtype, const void* x, void* y, std::int64_t count, Stream stream);

/// y = max(x, 0) for fp32 x, rounded to `dtype`; NaN stays NaN. If `dtype` is not f32, x and y must
/// not overlap.
void relu_from_f32(const float* x, tensor::DType dtype, void* y, std::int64_t count, Stream stream);

struct ReluGradientArguments {
    tensor::DType dtype = tensor::DType::f32;
    const void* y = nullptr;    // the output
    const void* dy0 = nullptr;  // the output's gradient is dy0 + dy1
    const void* dy1 = nullptr;  // null: none
    void* dx = nullptr;
    std::int64_t count = 0;
};
/// dx = 0 where y <= 0, else the output's gradient.
void relu_gradient(const ReluGradientArguments& arguments, Stream stream);

/// Sets every element to `value`, rounded to `dtype`.
void fill(tensor::DType dtype, void* to, float value, std::int64_t count, Stream stream);

}  // namespace hpcai::kernels
