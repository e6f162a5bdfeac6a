// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Addition, ReLU and filling. Buffers hold `count` elements of `dtype`, which is f32, f16 or bf16,
/// and begin at multiples of 16 bytes. Sums are formed in fp32 and rounded once. A result may
/// take the place of an operand.
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

/// y = max(x, 0); a NaN stays one.
void relu(tensor::DType dtype, const void* x, void* y, std::int64_t count, Stream stream);

/// y = max(x, 0) of fp32 x, rounded to `dtype`; a NaN stays one. Where `dtype` is not f32, x and y
/// lie apart.
void relu_of_f32(const float* x, tensor::DType dtype, void* y, std::int64_t count, Stream stream);

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

/// Every element becomes `value`, rounded to `dtype`.
void fill(tensor::DType dtype, void* to, float value, std::int64_t count, Stream stream);

}  // namespace hpcai::kernels
