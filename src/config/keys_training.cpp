// SPDX-License-Identifier: Apache-2.0
#include "key_builder.hpp"

namespace hpcai::config {
namespace {

using TrainingKeyBuilder = SectionBuilder<TrainingConfig>;

std::vector<Key> batch_keys(const TrainingKeyBuilder& training) {
    return {
        training.integer("batch_size", &TrainingConfig::batch_size,
                         {.meaning = "Samples in one step of one base model, over all its ranks.",
                          .unit = "samples",
                          .bounds = between(1, 1048576)}),
        training.integer("batch_norm_samples", &TrainingConfig::batch_norm_samples,
                         {.meaning = "Samples that share one BatchNorm statistic in training; auto "
                                     "is what a rank computes at once, batch_size / (data_degree x "
                                     "micro_batches); k times that the samples of k ranks, for a "
                                     "k that divides data_degree; a divisor of it a "
                                     "part of a rank's.",
                          .unit = "samples",
                          .bounds = between(1, 1048576)}),
        training.choice<Optimizer>(
            "optimizer", &TrainingConfig::optimizer,
            {{{Optimizer::sgd, "sgd"},
              {Optimizer::lars, "lars"},
              {Optimizer::lamb, "lamb"},
              {Optimizer::adam, "adam"},
              {Optimizer::adamw, "adamw"},
              {Optimizer::adagrad, "adagrad"}}},
            {.meaning = "Optimizer; sgd and lars have momentum, lars and lamb a trust ratio for "
                        "each filter and weight matrix."}),
    };
}

std::vector<Key> rate_keys(const TrainingKeyBuilder& training) {
    return {
        training.number("learning_rate", &TrainingConfig::learning_rate,
                        {.meaning = "Peak learning rate for a batch of learning_rate_batch "
                                    "samples; the one used is learning_rate * batch_size / "
                                    "learning_rate_batch.",
                         .bounds = between(0, 1000)}),
        training.integer("learning_rate_batch", &TrainingConfig::learning_rate_batch,
                         {.meaning = "Batch that learning_rate is meant for; equal to batch_size "
                                     "it turns linear scaling off.",
                          .unit = "samples",
                          .bounds = between(1, 1048576)}),
        training.choice<Schedule>(
            "schedule", &TrainingConfig::schedule,
            {{{Schedule::constant, "constant"},
              {Schedule::step, "step"},
              {Schedule::cosine, "cosine"},
              {Schedule::polynomial, "polynomial"}}},
            {.meaning = "How the learning rate goes on from its peak after the warm-up."}),
        training.integers("schedule_epochs", &TrainingConfig::schedule_epochs,
                          {.meaning = "Epochs at which schedule step multiplies the rate by "
                                      "schedule_factor, increasing.",
                           .unit = "epochs",
                           .bounds = between(1, 100000)}),
        training.number("schedule_factor", &TrainingConfig::schedule_factor,
                        {.meaning = "Factor of schedule step.", .bounds = above_up_to(0, 1)}),
        training.number(
            "schedule_power", &TrainingConfig::schedule_power,
            {.meaning = "Power of schedule polynomial.", .bounds = above_up_to(0, 100)}),
        training.number("final_learning_rate", &TrainingConfig::final_learning_rate,
                        {.meaning = "Rate at which schedules cosine and polynomial end, scaled "
                                    "with the batch as learning_rate is.",
                         .bounds = between(0, 1000)}),
        training.number("warmup_epochs", &TrainingConfig::warmup_epochs,
                        {.meaning = "Length of the linear warm-up to the peak rate, raised at "
                                    "every step.",
                         .unit = "epochs",
                         .bounds = between(0, 100000)}),
        training.number(
            "warmup_start", &TrainingConfig::warmup_start,
            {.meaning =
                 "Share of the peak rate from which the warm-up rises, one step before the first.",
             .unit = "fraction",
             .bounds = between(0, 1)}),
    };
}

std::vector<Key> optimizer_keys(const TrainingKeyBuilder& training) {
    return {
        training.number("momentum", &TrainingConfig::momentum,
                        {.meaning = "Momentum of sgd and lars.", .bounds = from_below(0, 1)}),
        training.boolean("nesterov", &TrainingConfig::nesterov,
                         {.meaning = "Uses Nesterov's form of momentum, with sgd and lars."}),
        training.boolean("momentum_correction", &TrainingConfig::momentum_correction,
                         {.meaning = "Whether the velocity of sgd and lars moves at the present "
                                     "learning rate, not at the rates of the steps that it came "
                                     "from; auto is true for sgd (as in PyTorch), false for lars "
                                     "(as in MLPerf)."}),
        training.number("beta1", &TrainingConfig::beta1,
                        {.meaning = "Share that the mean of the gradients keeps at each step, of "
                                    "lamb, adam and adamw.",
                         .unit = "fraction",
                         .bounds = from_below(0, 1)}),
        training.number("beta2", &TrainingConfig::beta2,
                        {.meaning = "Share that the mean of their squares keeps at each step, of "
                                    "lamb, adam and adamw.",
                         .unit = "fraction",
                         .bounds = from_below(0, 1)}),
        training.number("epsilon", &TrainingConfig::epsilon,
                        {.meaning = "Added to the divisor of each step, or of lars' trust ratio; "
                                    "auto is 0 for lars, 1e-6 for lamb, 1e-8 for adam and adamw, "
                                    "1e-10 for adagrad.",
                         .bounds = between(0, 1)}),
        training.number("trust_coefficient", &TrainingConfig::trust_coefficient,
                        {.meaning = "Factor of lars' trust ratio, weights over gradients by their "
                                    "norms, in You et al.'s paper eta.",
                         .bounds = above_up_to(0, 1000)}),
        training.number("weight_decay", &TrainingConfig::weight_decay,
                        {.meaning = "Factor of the weights that is added to their gradient, of "
                                    "lamb to its step; adamw takes it off the weights, times the "
                                    "learning rate.",
                         .bounds = between(0, 1)}),
        training.boolean("weight_decay_on_norm_and_bias",
                         &TrainingConfig::weight_decay_on_norm_and_bias,
                         {.meaning = "Decays the parameters of BatchNorm and the biases too; "
                                     "their trust ratio is 1 in any case."}),
    };
}

std::vector<Key> regularization_keys(const TrainingKeyBuilder& training) {
    return {
        training.number("label_smoothing", &TrainingConfig::label_smoothing,
                        {.meaning = "Share of each target that is spread evenly over all classes.",
                         .unit = "fraction",
                         .bounds = from_below(0, 1)}),
        training.boolean("zero_gamma", &TrainingConfig::zero_gamma,
                         {.meaning = "Starts the scale of each residual block's last BatchNorm at "
                                     "0, so that the block begins as the identity."}),
        training.number("batch_norm_momentum", &TrainingConfig::batch_norm_momentum,
                        {.meaning = "Share of the new batch in the running statistics that "
                                    "evaluation uses.",
                         .unit = "fraction",
                         .bounds = above_up_to(0, 1)}),
    };
}

std::vector<Key> engine_keys(const TrainingKeyBuilder& training) {
    return {
        training.choice<Precision>(
            "precision", &TrainingConfig::precision,
            {{{Precision::automatic, "auto"},
              {Precision::fp32, "fp32"},
              {Precision::tf32, "tf32"},
              {Precision::fp16, "fp16"},
              {Precision::mixed, "mixed"},
              {Precision::bf16, "bf16"},
              {Precision::int8, "int8"}}},
            {.meaning = "Number format of activations and gradients; mixed (fp16) and bf16 keep "
                        "fp32 master weights and statistics, fp16 has weights in fp16 too, rounded "
                        "after each step, tf32 cuts the factors of products, "
                        "int8 is fp32 whose convolutions, while they train, multiply integers of 8 "
                        "bits but for the gradients of filters; auto is mixed on a GPU, bf16 on a "
                        "CPU that has it, else fp32."}),
        training.integer(
            "loss_scale", &TrainingConfig::loss_scale,
            {.meaning = "Factor on the loss that keeps small gradients from vanishing; "
                        "0 lets precisions mixed and fp16 find it, doubling and halving, and "
                        "leaves it out in the others.",
             .bounds = between(0, 65536)}),
        training.boolean("fusion", &TrainingConfig::fusion,
                         {.meaning = "Lets the device run neighbouring operations as one."}),
        training.text("initial_weights", &TrainingConfig::initial_weights,
                      {.meaning = "safetensors file under torchvision's state-dict names to start "
                                  "from; of a classifier's file a detector takes its backbone; "
                                  "empty draws the weights from run.seed."}),
    };
}

}  // namespace

std::vector<Key> training_keys() {
    const TrainingKeyBuilder training("training", &Config::training);
    std::vector<Key> all;
    for (auto make : {batch_keys, rate_keys, optimizer_keys, regularization_keys, engine_keys}) {
        for (Key& key : make(training)) all.push_back(std::move(key));
    }
    return all;
}

}  // namespace hpcai::config
