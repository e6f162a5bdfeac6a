// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include <hpcai/device/shard_exchange.hpp>
#include <hpcai/device/step_scalars.hpp>
#include <hpcai/ops/optimizer_rule.hpp>
#include <hpcai/tensor/dtype.hpp>

/// Optimizers as descriptions; ops/optimizer_rule.hpp has their formulas.
namespace hpcai::device {

using ops::AdaGrad;
using ops::Adam;
using ops::Lamb;
using ops::Lars;
using ops::Sgd;

using OptimizerRule = std::variant<Sgd, Lars, Lamb, Adam, AdaGrad>;

/// Numbers that a rule keeps for each parameter: v, m and v, or s. All start at 0.
int states(const OptimizerRule& rule);

struct Optimizer {
    OptimizerRule rule;
    float weight_decay = 0;
    struct Range {
        std::size_t begin = 0;  // a multiple of 8
        std::size_t end = 0;
        bool decays = true;
        bool has_trust_ratio = false;  // else it is 1
        void* working_copy = nullptr;  // as Kernel::working_copies() has it; null: none
    };
    std::vector<Range> ranges;  // ascending, apart; elements in none stay as they are
    tensor::DType compute = tensor::DType::f32;  // of working copies
    // Whether w, too, is a number of `compute` after each step, rounded to nearest even: then there
    // is no fp32 master (Micikevicius et al. 2018, section 3.1, has what that costs).
    bool rounds_parameters = false;
    // Where every range with a trust ratio is this part's share of a parameter: the norms are of
    // all parts. Outlives what is built from it. Null: the ranges are whole.
    ShardExchange* exchange = nullptr;
};

/// Flat buffers of the same length, and the numbers of the step in device memory.
struct OptimizerTensors {
    std::span<float> parameters;
    std::span<const float> gradients;
    std::array<std::span<float>, 2> states;  // as many as states() says, in the formulas' order
    const StepScalars* numbers = nullptr;
};

/// Throws Error(internal) for buffers and ranges that do not fit one another or the rule.
void check(const Optimizer& optimizer, const OptimizerTensors& tensors);

}  // namespace hpcai::device
