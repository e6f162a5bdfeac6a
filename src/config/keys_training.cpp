// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> batch_and_rate_keys() {
    using C = TrainingConfig;
    using enum Optimizer;
    using enum Schedule;
    constexpr SectionKeys<&Config::training> key{"training"};
    return {
        key("batch_size", &C::batch_size, between(1, 1048576, "samples"),
            "Samples in one step of one base model, over all its ranks."),
        key("batch_norm_samples", &C::batch_norm_samples, between(1, 1048576, "samples"),
            "Samples that share BatchNorm statistics; auto is a rank's micro-batch, batch_size / "
            "(data_degree x micro_batches). With k times the value of auto, k ranks share "
            "statistics (k divides data_degree); a divisor of that value splits a micro-batch."),
        key("optimizer", &C::optimizer,
            {{sgd, "sgd"},
             {lars, "lars"},
             {lamb, "lamb"},
             {adam, "adam"},
             {adamw, "adamw"},
             {adagrad, "adagrad"}},
            "Optimizer; sgd and lars have momentum, lars and lamb a trust ratio for each filter "
            "and weight matrix."),
        key("learning_rate", &C::learning_rate, between(0, 1000),
            "Peak learning rate for learning_rate_batch samples; the rate used is learning_rate * "
            "batch_size / learning_rate_batch."),
        key("learning_rate_batch", &C::learning_rate_batch, between(1, 1048576, "samples"),
            "Batch size to which learning_rate refers; linear scaling is off if it equals "
            "batch_size."),
        key("schedule", &C::schedule,
            {{constant, "constant"},
             {step, "step"},
             {cosine, "cosine"},
             {polynomial, "polynomial"}},
            "Learning rate schedule after the warm-up."),
        key("schedule_epochs", &C::schedule_epochs, between(1, 100000, "epochs"),
            "Ascending epochs; schedule `step` multiplies the rate by schedule_factor at each."),
        key("schedule_factor", &C::schedule_factor, above_up_to(0, 1), "Factor of schedule step."),
        key("schedule_power", &C::schedule_power, above_up_to(0, 100),
            "Power of schedule polynomial."),
        key("final_learning_rate", &C::final_learning_rate, between(0, 1000),
            "Final rate of schedules cosine and polynomial, scaled like learning_rate."),
        key("warmup_epochs", &C::warmup_epochs, between(0, 100000, "epochs"),
            "Length of the linear warm-up, which raises the rate at every step."),
        key("warmup_start", &C::warmup_start, between(0, 1, "fraction"),
            "Fraction of the peak rate one step before the first warm-up step."),
    };
}

std::vector<Key> optimizer_keys() {
    using C = TrainingConfig;
    constexpr SectionKeys<&Config::training> key{"training"};
    return {
        key("momentum", &C::momentum, from_below(0, 1), "Momentum of sgd and lars."),
        key("nesterov", &C::nesterov, "Uses Nesterov momentum with sgd and lars."),
        key("momentum_correction", &C::momentum_correction,
            "Applies the current learning rate to the whole velocity of sgd and lars, instead of "
            "each step's own rate; auto is true for sgd (as in PyTorch), false for lars (as in "
            "MLPerf)."),
        key("beta1", &C::beta1, from_below(0, 1, "fraction"),
            "Decay of the gradients' running mean in lamb, adam and adamw."),
        key("beta2", &C::beta2, from_below(0, 1, "fraction"),
            "Decay of the squared gradients' running mean in lamb, adam and adamw."),
        key("epsilon", &C::epsilon, between(0, 1),
            "Added to the divisor of each step, or of the lars trust ratio; auto is 0 (lars), 1e-6 "
            "(lamb), 1e-8 (adam, adamw) or 1e-10 (adagrad)."),
        key("trust_coefficient", &C::trust_coefficient, above_up_to(0, 1000),
            "Factor of the lars trust ratio (weight norm / gradient norm); eta of You et al."),
        key("weight_decay", &C::weight_decay, between(0, 1),
            "adamw subtracts this factor x learning rate x weights from the weights. lamb adds "
            "factor x weights to the step; the others add this product to the gradient."),
        key("weight_decay_on_norm_and_bias", &C::weight_decay_on_norm_and_bias,
            "Also decays BatchNorm parameters and biases. Their trust ratio is 1 in any case."),
    };
}

std::vector<Key> engine_keys() {
    using C = TrainingConfig;
    using enum Precision;
    constexpr SectionKeys<&Config::training> key{"training"};
    return {
        key("label_smoothing", &C::label_smoothing, from_below(0, 1, "fraction"),
            "Fraction of each target that is spread evenly over all classes."),
        key("zero_gamma", &C::zero_gamma,
            "Initializes the scale of each residual block's last BatchNorm to 0, so that the block "
            "starts as the identity."),
        key("batch_norm_momentum", &C::batch_norm_momentum, above_up_to(0, 1, "fraction"),
            "Weight of the new batch in the running statistics for evaluation."),
        key("precision", &C::precision,
            {{automatic, "auto"},
             {fp32, "fp32"},
             {tf32, "tf32"},
             {fp16, "fp16"},
             {mixed, "mixed"},
             {bf16, "bf16"},
             {int8, "int8"}},
            "Number format of activations and gradients. mixed (fp16) and bf16 keep fp32 master "
            "weights and statistics; fp16 has weights in fp16, too, rounded after each step; tf32 "
            "rounds inputs of convolutions and linear layers to TF32; int8 is fp32 with most "
            "training convolutions in 8-bit integers, except filter gradients. auto is mixed on a "
            "GPU, bf16 on a CPU with bf16, else fp32."),
        key("loss_scale", &C::loss_scale, between(0, 65536),
            "Loss scale against vanishing gradients; 0 is dynamic for mixed and fp16, none for "
            "other precisions."),
        key("fusion", &C::fusion, "Lets the device fuse neighbouring operations."),
        key("initial_weights", &C::initial_weights,
            "Safetensors file of initial weights with torchvision's state-dict names. A detector "
            "loads its backbone from a classifier's file. Empty draws them from run.seed."),
    };
}

}  // namespace hpcai::config
