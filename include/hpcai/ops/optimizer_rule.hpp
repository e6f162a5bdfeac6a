// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Rules of optimizers. In their formulas w are parameters, lr the learning rate and t the number
/// of this step, from 1, both of StepScalars, and g = gradient_factor gradient, to which, unless
/// something else is said, weight_decay w is added where a range decays.
namespace hpcai::ops {

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

}  // namespace hpcai::ops
