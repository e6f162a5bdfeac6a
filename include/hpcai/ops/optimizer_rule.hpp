// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Update rules of optimizers. In the formulas w are parameters, lr is the learning rate and t the
/// number of this step, from 1, both of StepScalars. g = gradient_factor gradient, plus
/// weight_decay w where a range decays, unless stated otherwise.
namespace hpcai::ops {

/// v = momentum v + g; w -= lr v, or lr (g + momentum v) with Nesterov: PyTorch's SGD (Sutskever et
/// al. 2013; Goyal et al. 2017, eq. 9). Without momentum correction (eq. 10) v = momentum v + lr g;
/// w -= v, or lr g + momentum v: a step still moves at the rates that earlier steps had.
struct Sgd {
    float momentum = 0;
    bool nesterov = false;
    bool momentum_correction = true;
};

/// SGD with g, including weight decay, times the trust ratio of its range (You, Gitman, Ginsburg
/// 2017): trust_coefficient |w| / (|g| + weight_decay |w| + epsilon), where |g| excludes the decay,
/// and 1 if |w| or |g| is 0. Without momentum correction it is the LARS of MLPerf's ResNet-50.
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

/// u is Adam's step with bias correction, without decay in g, plus weight_decay w, times the trust
/// ratio |w| / |u| of its range, which is 1 if either is 0; w -= lr u (You et al. 2020, algorithm
/// 2; the LAMB of MLPerf's BERT without its limit on the norm of the gradient).
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
