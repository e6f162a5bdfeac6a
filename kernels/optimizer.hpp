// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/ops/optimizer_rule.hpp>
#include <hpcai/tensor/dtype.hpp>

#include "stream.hpp"

/// Optimizer steps on flat fp32 buffers; hpcai/ops/optimizer_rule.hpp has the formulas.
namespace hpcai::kernels {

/// Elements [begin, end) of the flat buffers; `begin` is a multiple of 8.
struct UpdateRange {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool decays = true;            // whether weight decay applies
    bool has_trust_ratio = false;  // false: the ratio is 1
    void* working_copy = nullptr;  // (end - begin), 16-byte aligned; null: none
};

/// A part of a range, whose squares one thread block sums; `begin` is a multiple of 8.
struct UpdatePart {
    std::int64_t range = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
};

/// Flat buffers of `count` elements, all 16-byte aligned.
struct UpdateArguments {
    float* parameters = nullptr;
    const float* gradients = nullptr;
    float* states[2] = {};                             // in the order of the rule's formula
    tensor::DType working_dtype = tensor::DType::f16;  // of working copies: f16, bf16 or f32
    bool rounds_parameters = false;                    // round new parameters to working_dtype
    std::int64_t count = 0;

    const UpdateRange* ranges = nullptr;  // in device memory, ascending, disjoint
    std::int64_t range_count = 0;         // 0: one range of all elements, with decay, no copy
    const float* trust_ratios = nullptr;  // (range_count) in device memory; null: all are 1

    float weight_decay = 0;
    const ops::StepScalars* scalars = nullptr;  // in device memory
};

/// The parts of all ranges in device memory, range after range, and memory for sums.
struct UpdateParts {
    const UpdatePart* parts = nullptr;
    std::int64_t count = 0;
    const std::int64_t* first_part = nullptr;  // (range_count + 1), of each range; then `count`
    double* sums = nullptr;  // (2, count): squares of parameters; of gradients (LARS) or u (LAMB)
};

/// The functions *_step() take one step for the elements in ranges, unless scalars->finite is 0.
/// They also write the new parameters, rounded to nearest even, to the working copy of the range.
void sgd_step(const UpdateArguments& arguments, const ops::Sgd& rule, Stream stream);
/// Uses the trust ratios of `arguments`.
void lars_step(const UpdateArguments& arguments, const ops::Lars& rule, Stream stream);
void adam_step(const UpdateArguments& arguments, const ops::Adam& rule, Stream stream);
void adagrad_step(const UpdateArguments& arguments, const ops::AdaGrad& rule, Stream stream);
/// The final update of LAMB, after lamb_moments() and lamb_ratios().
void lamb_step(const UpdateArguments& arguments, const ops::Lamb& rule, Stream stream);

/// Sums the squares of parameters and gradients of each part in a fixed order.
void square_sums(const UpdateArguments& arguments, const UpdateParts& parts, Stream stream);
/// Updates m and v of LAMB, and sums the squares of parameters and of u in a fixed order. Does
/// nothing if scalars->finite is 0.
void lamb_moments(const UpdateArguments& arguments, const ops::Lamb& rule, const UpdateParts& parts,
                  Stream stream);

/// Compute the trust ratios (range_count) of LARS or LAMB from the sums of the parts.
void lars_ratios(const UpdateArguments& arguments, const ops::Lars& rule, const UpdateParts& parts,
                 float* ratios, Stream stream);
void lamb_ratios(const UpdateArguments& arguments, const UpdateParts& parts, float* ratios,
                 Stream stream);

/// Sets scalars->finite to 0 if any of `gradients` (count, 16-byte aligned) is infinite or NaN. If
/// the gradients are sums over ranks, all ranks get the same result.
void check_finite(const float* gradients, std::int64_t count, ops::StepScalars* scalars,
                  Stream stream);

/// Ends a step; see Device::finish_step.
void update_loss_scale(const ops::LossScalePolicy& policy, ops::StepScalars* scalars,
                       Stream stream);

}  // namespace hpcai::kernels
