// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <variant>
#include <vector>

#include <hpcai/device/shard_exchange.hpp>
#include <hpcai/device/step_scalars.hpp>
#include <hpcai/tensor/dtype.hpp>

/// Optimizers as descriptions. In their formulas w are parameters, lr the learning rate and t the
/// number of this step, from 1, both of StepScalars, and g = gradient_factor gradient, to which,
/// unless something else is said, weight_decay w is added where a range decays.
namespace hpcai::device {

/// v = momentum v + g; w -= lr v, or lr (g + momentum v) with Nesterov: PyTorch's SGD (Sutskever et
/// al. 2013; Goyal et al. 2017, eq. 9). Without momentum correction (eq. 10) v = momentum v + lr g;
/// w -= v, or lr g + momentum v: a step still moves at the rates that earlier steps had.
struct Sgd {
    float momentum = 0;
    bool nesterov = false;
    bool momentum_correction = true;
};

/// SGD with g, weight decay included, times the trust ratio of its range (You, Gitman, Ginsburg
/// 2017): trust_coefficient |w| / (|g| + weight_decay |w| + epsilon), |g| without the decay, and 1
/// where |w| or |g| is 0. Without momentum correction it is the LARS of MLPerf's ResNet-50.
struct Lars {
    float momentum = 0;
    bool nesterov = false;
    bool momentum_correction = false;
    float trust_coefficient = 0.001F;
    float epsilon = 0;
};

/// m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2;
/// w -= lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon): PyTorch's Adam (Kingma, Ba
/// 2015). With decoupled decay w is first multiplied by 1 - lr weight_decay and g has none:
/// PyTorch's AdamW (Loshchilov, Hutter 2019).
struct Adam {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    bool decoupled_decay = false;
};

/// Adam's step with bias correction, u, to which weight_decay w is added and not to g, then times
/// the trust ratio |w| / |u| of its range, 1 where either is 0; w -= lr u (You et al. 2020,
/// algorithm 2; the LAMB of MLPerf's BERT without its limit on the gradient's norm).
struct Lamb {
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-6;
};

/// s = s + g^2; w -= lr g / (sqrt(s) + epsilon): PyTorch's Adagrad without a decay of its own
/// (Duchi, Hazan, Singer 2011).
struct AdaGrad {
    float epsilon = 1e-10F;
};

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
