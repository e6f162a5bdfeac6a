// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/step_runner.hpp>

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
    StepLog* log = nullptr;  // of the steps
    // Called with the elements of each bucket of gradients before its sum; with it a step is not
    // recorded. Null: nobody is.
    std::function<void(const comm::Range& elements)> before_sum = nullptr;
};

/// One optimizer step of a model on the inputs that its network has been given: working copies,
/// forward, backward with the sums over the group's ranks, update. Parameters may be changed
/// between steps by ParameterStore::write. Where the device can, it is recorded once and enqueued
/// whole from the third step on; the host then waits only to read results.
class TrainingStep final : public StepRunner {
public:
    explicit TrainingStep(const StepSetup& setup);

    /// Enqueues a step, the same on all ranks of the group, in the order of the other calls. A rank
    /// without a batch takes part all the same, on any inputs, and says so by `has_failed`; then
    /// the update is left out on all ranks.
    void run(double learning_rate, bool has_failed = false);

    void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) override;
    /// Losses and samples are this rank's.
    StepResults read() override;
    std::int64_t steps_between_readings() const override { return steps_between_readings_; }
    const comm::GradientBuckets& buckets() const override { return buckets_; }
    double communication_seconds() const override;
    void save(Snapshot& to) override;
    void restore(const Snapshot& from) override;

private:
    void refresh_copies();
    void enqueue();
    void mark();
    std::optional<PhaseSeconds> timed_phases();

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
    std::int64_t unread_samples_ = 0;
    std::optional<std::uint64_t> prepared_;  // copies, after so many writes of parameters
    StepLog* log_;
    std::unique_ptr<device::Timeline> timeline_;  // of the recording's phases
    std::unique_ptr<device::Recording> recording_;
    bool has_repeated_ = false;  // since the last reading
};

}  // namespace hpcai::training
