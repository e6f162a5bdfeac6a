// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// The optimizer over the flat buffers, and the working copies of a network. Trust ratios are those
/// of filters and of weight matrices, each of its own, and only these decay unless
/// training.weight_decay_on_norm_and_bias.
device::Optimizer plan_optimizer(const graph::Network& network, const graph::ParameterStore& store,
                                 const config::TrainingConfig& training);

/// The store's buffers and the numbers of the network's steps, for an optimizer.
device::OptimizerTensors optimizer_tensors(graph::Network& network, graph::ParameterStore& store);

/// Everything outlives what is made from it.
struct StepSetup {
    const config::Config& config;
    graph::Network& network;  // training mode, batch: this rank's share
    device::Device& device;
    graph::ParameterStore& store;
    comm::GradientReducer& reducer;
};

/// What the device counted, of this rank.
struct StepResults {
    double loss_sum = 0;              // of the rows since the last reading
    std::uint32_t skipped_steps = 0;  // since the start: for gradients that were not finite
    bool has_failed = false;          // any rank, in the last step
    double loss_scale = 1;            // of the mean loss
    bool has_diverged = false;        // steps were skipped since the last reading, and no smaller
                                      // loss scale can help
};

/// One optimizer step of a model on the inputs that its network has been given: working copies,
/// forward, backward with the sums over the group's ranks, update. Parameters may be changed
/// between steps by ParameterStore::write. Where the device can, it is recorded once and enqueued
/// whole from the third step on; the host then waits only to read results.
class TrainingStep {
public:
    explicit TrainingStep(const StepSetup& setup);

    /// Enqueues a step, the same on all ranks of the group, in the order of the other calls. A rank
    /// without a batch takes part all the same, on any inputs, and says so by `has_failed`; then
    /// the update is left out on all ranks.
    void run(double learning_rate, bool has_failed = false);

    /// Waits for the steps that were run and throws what went wrong on the device or between the
    /// ranks.
    StepResults read();

    /// Steps to be run between two readings: run.loss_steps, else as many as cost no speed.
    std::int64_t steps_between_readings() const { return steps_between_readings_; }

    const comm::GradientBuckets& buckets() const { return buckets_; }

private:
    void refresh_copies();
    void enqueue();
    template <typename T>
    void set(T device::StepNumbers::*number, T value);

    device::Device& device_;
    graph::Network& network_;
    graph::ParameterStore& store_;
    comm::GradientReducer& reducer_;
    device::LossScalePolicy loss_scale_;
    std::span<const float> checked_;  // must be finite
    std::uint32_t skipped_before_ = 0;
    std::unique_ptr<device::Update> update_;
    comm::GradientBuckets buckets_;
    bool can_be_recorded_;
    std::int64_t steps_between_readings_;
    std::int64_t steps_ = 0;
    std::optional<std::uint64_t> prepared_;  // copies, after so many writes of parameters
    std::unique_ptr<device::Recording> recording_;
};

}  // namespace hpcai::training
