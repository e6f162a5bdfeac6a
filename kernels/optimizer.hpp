// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/ops/optimizer_rule.hpp>
#include <hpcai/ops/step_scalars.hpp>
#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Steps of optimizers over flat fp32 buffers; hpcai/ops/optimizer_rule.hpp has their formulas.
namespace hpcai::kernels {

/// Elements [begin, end) of the flat buffers; `begin` is a multiple of 8.
struct UpdateRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool decays = true;            // whether weight decay applies
    bool has_trust_ratio = false;  // else it is 1
    void* working_copy = nullptr;  // (end - begin), at a multiple of 16 bytes; null: none
};

/// A piece of a range, whose squares one block sums; `begin` is a multiple of 8.
struct UpdatePart {
    std::int64_t range = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// Flat buffers of `count` elements, all at multiples of 16 bytes.
struct UpdateArguments {
    float* parameters = nullptr;
    const float* gradients = nullptr;
    float* states[2] = {};  // as many as the rule has, in its formula's order
    tensor::DType working_dtype = tensor::DType::f16;  // of working copies; or bf16, or f32
    bool rounds_parameters = false;  // w is rounded to working_dtype before it is written
    std::int64_t count = 0;

    const UpdateRange* ranges = nullptr;  // in device memory, ascending, apart
    std::int64_t range_count = 0;         // 0: everything is one range that decays, without copy
    const float* trust_ratios = nullptr;  // (range_count) in device memory; null: all are 1

    float weight_decay = 0;
    const ops::StepScalars* numbers = nullptr;  // in device memory
};

/// The parts of all ranges in device memory, one range's after the other's, and room for sums.
struct UpdateParts {
    const UpdatePart* parts = nullptr;
    std::int64_t count = 0;
    const std::int64_t* first_part = nullptr;  // (range_count + 1), of each range
    double* sums = nullptr;                    // (2, count)
};

/// The following take one step, except of elements in no range and while numbers->finite is 0.
/// Where w is written, the range's working copy gets it, too, rounded to nearest even.
void sgd_step(const UpdateArguments& arguments, const ops::Sgd& rule, Stream stream);
/// With the trust ratios of `arguments`.
void lars_step(const UpdateArguments& arguments, const ops::Lars& rule, Stream stream);
void adam_step(const UpdateArguments& arguments, const ops::Adam& rule, Stream stream);
void adagrad_step(const UpdateArguments& arguments, const ops::AdaGrad& rule, Stream stream);
/// The last part of LAMB's step, behind lamb_moments and trust_ratios.
void lamb_step(const UpdateArguments& arguments, const ops::Lamb& rule, Stream stream);

/// The sums of the squares of parameters and gradients of each part, in an order that never
/// changes.
void square_sums(const UpdateArguments& arguments, const UpdateParts& parts, Stream stream);
/// Moves LAMB's m and v, and sums the squares of parameters and of u likewise. While
/// numbers->finite is 0 it does nothing.
void lamb_moments(const UpdateArguments& arguments, const ops::Lamb& rule, const UpdateParts& parts,
                  Stream stream);

/// The trust ratios (range_count) of LARS or LAMB from the sums of the parts.
void lars_ratios(const UpdateArguments& arguments, const ops::Lars& rule, const UpdateParts& parts,
                 float* ratios, Stream stream);
void lamb_ratios(const UpdateArguments& arguments, const UpdateParts& parts, float* ratios,
                 Stream stream);

}  // namespace hpcai::kernels
