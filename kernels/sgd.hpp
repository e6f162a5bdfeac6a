// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/tensor/dtype.hpp>

#include "step_numbers.hpp"
#include "stream.hpp"

namespace hpcai::kernels {

/// Elements [begin, end) of the flat buffers; `begin` is a multiple of 8.
struct SgdRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool decays = true;            // whether weight decay applies
    void* working_copy = nullptr;  // (end - begin), at a multiple of 16 bytes; null: none
};

/// Flat buffers of `count` elements, all at multiples of 16 bytes.
struct SgdArguments {
    float* parameters = nullptr;
    const float* gradients = nullptr;
    float* momentum_buffer = nullptr;
    tensor::DType working_dtype = tensor::DType::f16;  // of working copies; or bf16, or f32
    std::int64_t count = 0;

    const SgdRange* ranges = nullptr;  // in device memory, ascending, apart
    std::int64_t range_count = 0;      // 0: everything is one range that decays, without copy

    float momentum = 0;
    float weight_decay = 0;
    bool nesterov = false;
    const StepNumbers* numbers = nullptr;  // in device memory
};

/// One step of PyTorch's SGD in fp32. With g = gradient_factor gradient (+ weight_decay w) and the
/// learning rate of `numbers`: v = momentum v + g; w -= learning_rate v, with Nesterov's
/// learning_rate (g + momentum v). Elements in no range stay as they are, and so does everything
/// while numbers->finite is 0. Where w is written, the range's working copy gets it, too, rounded
/// to nearest even.
void sgd(const SgdArguments& arguments, Stream stream);

namespace reference {
void sgd(const SgdArguments& arguments, Stream);
}  // namespace reference

}  // namespace hpcai::kernels
