// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include <hpcai/device/shard_exchange.hpp>
#include <hpcai/ops/optimizer_rule.hpp>
#include <hpcai/ops/step_scalars.hpp>
#include <hpcai/tensor/dtype.hpp>

/// Descriptions of optimizers; ops/optimizer_rule.hpp has the formulas.
namespace hpcai::device {

using ops::AdaGrad;
using ops::Adam;
using ops::Lamb;
using ops::Lars;
using ops::Sgd;
using ops::StepScalars;

using OptimizerRule = std::variant<Sgd, Lars, Lamb, Adam, AdaGrad>;

/// Returns the number of states that a rule keeps for each parameter: 1 (v or s) or 2 (m and v).
/// All are initially 0.
int state_count(const OptimizerRule& rule);

struct Optimizer {
    OptimizerRule rule;
    float weight_decay = 0;
    struct Range {
        std::size_t begin = 0;  // a multiple of 8
        std::size_t end = 0;
        bool decays = true;
        bool has_trust_ratio = false;  // false: the ratio is 1
        void* working_copy = nullptr;  // see Kernel::working_copies(); null: none
    };
    std::vector<Range> ranges;  // ascending, disjoint; other elements are not changed
    tensor::DType compute = tensor::DType::f32;  // of working copies
    // Rounds w to `compute`, to nearest even, after each step: there is no fp32 master
    // (Micikevicius et al. 2018, section 3.1, describes the loss of accuracy).
    bool rounds_parameters = false;
    // Set for a shard of a network: ranges hold the shard's part of each parameter, so trust ratios
    // use the norms over all shards. Must outlive the Update. Null: ranges hold full parameters.
    ShardExchange* exchange = nullptr;
};

/// Flat buffers of the same length, and the scalars of the step in device memory.
struct OptimizerTensors {
    std::span<float> parameters;
    std::span<const float> gradients;
    std::array<std::span<float>, 2> states;  // the first state_count(rule) are used, m before v
    const StepScalars* scalars = nullptr;
};

/// Throws Error(internal) for buffers and ranges that do not match each other or the rule.
void check(const Optimizer& optimizer, const OptimizerTensors& tensors);

}  // namespace hpcai::device
