// SPDX-License-Identifier: Apache-2.0
#include "section_keys.hpp"

namespace hpcai::config {

std::vector<Key> batch_and_rate_keys() {
    using C = TrainingConfig;
    using enum Optimizer;
    using enum Schedule;
    constexpr SectionKeys<&Config::training> key;
    return {
        key("batch_size", &C::batch_size, between(1, 1048576, "samples"),
            "Samples in one step of one base model, over all its ranks."),
        key("batch_norm_samples", &C::batch_norm_samples, between(1, 1048576, "samples"),
            "Samples that share one BatchNorm statistic in training; auto is what a rank computes "
            "at once, batch_size / (data_degree x micro_batches); k times that the samples of k "
            "ranks, for a k that divides data_degree; a divisor of it a part of a rank's."),
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
            "Peak learning rate for a batch of learning_rate_batch samples; the one used is "
            "learning_rate * batch_size / learning_rate_batch."),
        key("learning_rate_batch", &C::learning_rate_batch, between(1, 1048576, "samples"),
            "Batch that learning_rate is meant for; equal to batch_size it turns linear scaling "
            "off."),
        key("schedule", &C::schedule,
            {{constant, "constant"},
             {step, "step"},
             {cosine, "cosine"},
             {polynomial, "polynomial"}},
            "How the learning rate goes on from its peak after the warm-up."),
        key("schedule_epochs", &C::schedule_epochs, between(1, 100000, "epochs"),
            "Epochs at which schedule step multiplies the rate by schedule_factor, increasing."),
        key("schedule_factor", &C::schedule_factor, above_up_to(0, 1), "Factor of schedule step."),
        key("schedule_power", &C::schedule_power, above_up_to(0, 100),
            "Power of schedule polynomial."),
        key("final_learning_rate", &C::final_learning_rate, between(0, 1000),
            "Rate at which schedules cosine and polynomial end, scaled with the batch as "
            "learning_rate is."),
        key("warmup_epochs", &C::warmup_epochs, between(0, 100000, "epochs"),
            "Length of the linear warm-up to the peak rate, raised at every step."),
        key("warmup_start", &C::warmup_start, between(0, 1, "fraction"),
            "Share of the peak rate from which the warm-up rises, one step before the first."),
    };
}

std::vector<Key> optimizer_keys() {
    using C = TrainingConfig;
    constexpr SectionKeys<&Config::training> key;
    return {
        key("momentum", &C::momentum, from_below(0, 1), "Momentum of sgd and lars."),
        key("nesterov", &C::nesterov, "Uses Nesterov's form of momentum, with sgd and lars."),
        key("momentum_correction", &C::momentum_correction,
            "Whether the velocity of sgd and lars moves at the present learning rate, not at the "
            "rates of the steps that it came from; auto is true for sgd (as in PyTorch), false for "
            "lars (as in MLPerf)."),
        key("beta1", &C::beta1, from_below(0, 1, "fraction"),
            "Share that the mean of the gradients keeps at each step, of lamb, adam and adamw."),
        key("beta2", &C::beta2, from_below(0, 1, "fraction"),
            "Share that the mean of their squares keeps at each step, of lamb, adam and adamw."),
        key("epsilon", &C::epsilon, between(0, 1),
            "Added to the divisor of each step, or of lars' trust ratio; auto is 0 for lars, 1e-6 "
            "for lamb, 1e-8 for adam and adamw, 1e-10 for adagrad."),
        key("trust_coefficient", &C::trust_coefficient, above_up_to(0, 1000),
            "Factor of lars' trust ratio, weights over gradients by their norms, in You et al.'s "
            "paper eta."),
        key("weight_decay", &C::weight_decay, between(0, 1),
            "Factor of the weights that is added to their gradient, of lamb to its step; adamw "
            "takes it off the weights, times the learning rate."),
        key("weight_decay_on_norm_and_bias", &C::weight_decay_on_norm_and_bias,
            "Decays the parameters of BatchNorm and the biases too; their trust ratio is 1 in any "
            "case."),
    };
}

std::vector<Key> engine_keys() {
    using C = TrainingConfig;
    using enum Precision;
    constexpr SectionKeys<&Config::training> key;
    return {
        key("label_smoothing", &C::label_smoothing, from_below(0, 1, "fraction"),
            "Share of each target that is spread evenly over all classes."),
        key("zero_gamma", &C::zero_gamma,
            "Starts the scale of each residual block's last BatchNorm at 0, so that the block "
            "begins as the identity."),
        key("batch_norm_momentum", &C::batch_norm_momentum, above_up_to(0, 1, "fraction"),
            "Share of the new batch in the running statistics that evaluation uses."),
        key("precision", &C::precision,
            {{automatic, "auto"},
             {fp32, "fp32"},
             {tf32, "tf32"},
             {fp16, "fp16"},
             {mixed, "mixed"},
             {bf16, "bf16"},
             {int8, "int8"}},
            "Number format of activations and gradients; mixed (fp16) and bf16 keep fp32 master "
            "weights and statistics, fp16 has weights in fp16 too, rounded after each step, tf32 "
            "cuts the factors of products, int8 is fp32 whose convolutions, while they train, "
            "multiply integers of 8 bits but for the gradients of filters; auto is mixed on a GPU, "
            "bf16 on a CPU that has it, else fp32."),
        key("loss_scale", &C::loss_scale, between(0, 65536),
            "Factor on the loss that keeps small gradients from vanishing; 0 lets precisions mixed "
            "and fp16 find it, doubling and halving, and leaves it out in the others."),
        key("fusion", &C::fusion, "Lets the device run neighbouring operations as one."),
        key("initial_weights", &C::initial_weights,
            "safetensors file under torchvision's state-dict names to start from; of a "
            "classifier's file a detector takes its backbone; empty draws the weights from "
            "run.seed."),
    };
}

}  // namespace hpcai::config
