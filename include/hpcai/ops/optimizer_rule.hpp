// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Update rules of optimizers. In the formulas w is one parameter tensor, lr is
/// StepScalars::learning_rate and t = StepScalars::taken_steps + 1 is the number of this step. g is
/// gradient_factor * gradient + weight_decay * w, without the last term if no weight decay applies.
namespace hpcai::ops {

/// v = momentum * v + g; w -= lr * v, or w -= lr * (g + momentum * v) with Nesterov: PyTorch's SGD
/// (Sutskever et al. 2013; Goyal et al. 2017, eq. 9). Without momentum correction (eq. 10):
/// v = momentum * v + lr * g; w -= v, or w -= lr * g + momentum * v with Nesterov.
struct Sgd {
    static constexpr int kStates = 1;  // v
    float momentum = 0;
    bool nesterov = false;
    bool momentum_correction = true;
};

/// SGD, where g (with weight decay) is multiplied by its tensor's trust ratio (You et al. 2017):
/// trust_coefficient * |w| / (|g| + weight_decay * |w| + epsilon), with |g| before the decay; 1 if
/// |w| or |g| is 0. Without momentum correction this is MLPerf's LARS for ResNet-50.
struct Lars {
    static constexpr int kStates = 1;  // v
    float momentum = 0;
    bool nesterov = false;
    bool momentum_correction = false;
    float trust_coefficient = 0.001F;
    float epsilon = 0;
};

/// m = beta1 * m + (1 - beta1) * g; v = beta2 * v + (1 - beta2) * g^2;
/// w -= lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon): PyTorch's Adam (Kingma, Ba
/// 2015). With decoupled decay w is first multiplied by 1 - lr * weight_decay; g has no decay:
/// PyTorch's AdamW (Loshchilov, Hutter 2019).
struct Adam {
    static constexpr int kStates = 2;  // m, v
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    bool decoupled_decay = false;
};

/// w -= lr * r * u (You et al. 2020, algorithm 2; MLPerf's BERT LAMB without gradient clipping).
/// u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + weight_decay * w with Adam's m and
/// v, where g has no decay. r = |w| / |u| is the tensor's trust ratio, 1 if |w| or |u| is 0.
struct Lamb {
    static constexpr int kStates = 2;  // m, v
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-6;
};

/// s = s + g^2; w -= lr * g / (sqrt(s) + epsilon): PyTorch's Adagrad without lr_decay (Duchi,
/// Hazan, Singer 2011).
struct AdaGrad {
    static constexpr int kStates = 1;  // s
    float epsilon = 1e-10F;
};

/// The scalars of a training step, in device memory so that each launch of a CUDA graph reads them.
/// The host initializes all fields, writes learning_rate and micro_batch, clears loss_sum, and
/// clears `finite` if another stage skips the step. The step adds to loss_sum and writes the rest.
struct StepScalars {
    float learning_rate = 0;
    float loss_scale = 1;             // factor of the gradients of the samples' losses
    float gradient_factor = 1;        // LossScalePolicy::loss_weight / loss_scale
    std::uint32_t finite = 1;         // 0: the gradients have an infinity or a NaN
    std::uint32_t good_steps = 0;     // steps since it was reset by a skip or a due doubling
    std::uint32_t skipped_steps = 0;  // steps without an update since the start
    std::uint32_t taken_steps = 0;    // steps with an update since the start
    std::uint32_t micro_batch = 0;    // index in the step; only the backward pass reads it
    double loss_sum = 0;              // of the samples' losses since the host cleared it
};

/// The rule by which the loss scale changes: that of PyTorch's GradScaler with factors 2 and 1/2.
struct LossScalePolicy {
    bool dynamic = false;  // false: the scale is constant
    std::uint32_t good_steps_to_double = 2000;
    float min_scale = 1;  // limits of StepScalars::loss_scale
    float max_scale = 16777216;
    float loss_weight = 1;  // of a sample's loss in the minimized loss: 1 / training.batch_size
};

}  // namespace hpcai::ops
