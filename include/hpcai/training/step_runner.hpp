// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_log.hpp>

namespace hpcai::training {

/// Everything outlives what is made from it.
struct StepSetup {
    const config::Config& config;
    graph::Network& network;  // training mode; batch: this rank's share, or a micro-batch of it
    device::Device& device;
    graph::ParameterStore& store;
    comm::GradientReducer& reducer;  // over the ranks that train the same parameters
    StepLog* log = nullptr;          // of the steps
    // Called with the elements of each bucket of gradients before its sum; with it a step is not
    // recorded. May be null.
    std::function<void(const comm::Range& elements)> before_sum = nullptr;
};

/// What the device counted.
struct StepResults {
    double loss_sum = 0;              // of the rows since the last reading
    std::int64_t samples = 0;         // of the batches since then, without padding
    std::uint32_t skipped_steps = 0;  // since the start, because gradients were not finite
    bool has_failed = false;          // any rank, in the last step
    double loss_scale = 1;            // of the mean loss
    bool has_diverged = false;        // steps were skipped since the last reading, and no smaller
                                      // loss scale can help
    std::optional<PhaseSeconds> phases;  // of the last step, by the device's clock
};

/// The costs of a rank's messages between the stages of a pipeline and between shards.
struct MessageAccounting {
    std::int64_t steps = 0;
    std::int64_t bytes_sent = 0;
    double wait_seconds = 0;     // for messages of other stages, and for all stages at a step's end
    comm::PartAccounting parts;  // with one stage, includes the wait for all at a step's end
};

/// Takes a model's optimizer steps on one rank of the group that trains it. Parameters may be
/// changed between steps by ParameterStore::write.
class StepRunner {
public:
    virtual ~StepRunner() = default;
    StepRunner(const StepRunner&) = delete;
    StepRunner& operator=(const StepRunner&) = delete;

    /// Takes a step on this rank's part of a batch. All ranks of the group take the same steps in
    /// the order of the other calls. A rank without a batch (null) takes part on padding and passes
    /// `has_failed`; then all ranks leave out the update.
    virtual void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) = 0;

    /// Waits for the steps that were run. Throws what went wrong on the device or between the
    /// ranks. Losses and samples are this rank's.
    virtual StepResults read();

    /// Steps to be run between two readings: run.loss_steps, else as many as cost no speed.
    std::int64_t steps_between_readings() const { return steps_between_readings_; }

    const comm::GradientBuckets& buckets() const { return buckets_; }

    /// Seconds since the start, by the host's clock, in gradient sums and messages without any
    /// computation.
    virtual double communication_seconds() const;

    /// Empty without stages and shards.
    virtual MessageAccounting messages() const { return {}; }

    /// Call it after a step whose results were read. Adds to `to` the state on which the digits of
    /// the next step depend, besides parameters and optimizer states.
    void save(Snapshot& to);
    /// Call it before a step. Continues as the rank that called save(). Throws Error(data) naming
    /// the array that does not fit; some may then have been restored.
    void restore(const Snapshot& from);

protected:
    explicit StepRunner(const StepSetup& setup);

    /// Enqueues the step's learning rate, whether this rank has failed, and working copies of
    /// parameters that were changed since the last step.
    void begin_step(double learning_rate, bool has_failed);
    /// Enqueues a change of one of the network's numbers.
    template <typename T>
    void set_number(T device::StepScalars::*number, T value) {
        device_.enqueue_upload(&(network_.step_scalars()->*number),
                               std::as_bytes(std::span(&value, 1)));
    }
    /// Marks the gradients that a step of the last backward pass completes, and lets sums advance.
    void notify_buckets(const graph::Step& step);
    /// Marks the status that begin_step() enqueued, which is summed with the gradients.
    void notify_status() { buckets_.ready(store_.ranges().size()); }

    device::Device& device_;
    graph::Network& network_;
    graph::ParameterStore& store_;
    comm::GradientReducer& reducer_;
    StepLog* log_;
    device::LossScalePolicy loss_scale_;
    std::span<const float> checked_;  // gradients that must be finite
    std::unique_ptr<device::Update> update_;
    comm::GradientBuckets buckets_;
    std::int64_t steps_between_readings_;
    std::int64_t unread_samples_ = 0;

private:
    std::uint32_t skipped_before_ = 0;            // steps, at the last reading
    std::optional<std::uint64_t> copied_writes_;  // writes of parameters that copies include
};

}  // namespace hpcai::training
