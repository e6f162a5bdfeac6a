// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/snapshot.hpp>

namespace hpcai::training {

/// What the device counted.
struct StepResults {
    double loss_sum = 0;              // of the rows since the last reading
    std::int64_t samples = 0;         // of the batches since then, padding apart
    std::uint32_t skipped_steps = 0;  // since the start: for gradients that were not finite
    bool has_failed = false;          // any rank, in the last step
    double loss_scale = 1;            // of the mean loss
    bool has_diverged = false;        // steps were skipped since the last reading, and no smaller
                                      // loss scale can help
    // Of the last step by the device's clock, without what only the host knows of
    std::optional<PhaseSeconds> phases;
};

/// What the messages between the stages of a pipeline, and between parts, have cost a rank.
struct MessageAccounting {
    std::int64_t steps = 0;
    std::int64_t bytes_sent = 0;
    double wait_seconds = 0;     // for what other stages send, and for all of them at a step's end
    comm::PartAccounting parts;  // where there is one stage, with its wait for all at a step's end
};

/// Takes a model's optimizer steps, on one rank of the group that trains it.
class StepRunner {
public:
    virtual ~StepRunner() = default;

    /// Takes a step on this rank's part of a batch, the same step on all ranks of the group, in the
    /// order of the other calls. A rank without one (null) takes part all the same, on padding, and
    /// says so by `has_failed`; then the update is left out on all ranks.
    virtual void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) = 0;

    /// Waits for the steps that were run and throws what went wrong on the device or between the
    /// ranks.
    virtual StepResults read() = 0;

    /// Steps to be run between two readings: run.loss_steps, else as many as cost no speed.
    virtual std::int64_t steps_between_readings() const = 0;

    virtual const comm::GradientBuckets& buckets() const = 0;

    /// By the host's clock, since the start: in sums of gradients and messages, while nothing was
    /// computed.
    virtual double communication_seconds() const = 0;

    /// None where there are neither stages nor parts.
    virtual MessageAccounting messages() const { return {}; }

    /// Behind a step whose results were read: adds to `to` what the digits of the next step depend
    /// on beside parameters and optimizer states.
    virtual void save(Snapshot& to) = 0;
    /// Before a step: goes on as the rank did that save()d. Throws Error(data) naming the array
    /// that does not fit; then some have been put back.
    virtual void restore(const Snapshot& from) = 0;
};

}  // namespace hpcai::training
