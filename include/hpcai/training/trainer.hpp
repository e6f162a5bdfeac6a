// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/training/faults.hpp>
#include <hpcai/training/pipeline_share.hpp>
#include <hpcai/training/replica_audit.hpp>
#include <hpcai/training/schedule.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// What is known when a step has been enqueued, without any communication.
struct StepReport {
    std::int64_t step = 0;   // done, of all epochs
    std::int64_t steps = 0;  // of all epochs
    int epoch = 0;           // from 0
    // Mean over this rank's samples of the steps last read, in a pipeline and with micro-batches
    // over the group's; NaN: none
    double loss = 0;
    std::int64_t samples = 0;  // of the step, all ranks of the group
    bool is_read = false;      // its results have been: the device has done it
};

struct EpochReport {
    std::int64_t steps = 0;
    std::int64_t samples = 0;  // all ranks of the group
    double seconds = 0;
    double mean_loss = 0;  // over all ranks
};

class Trainer;

/// What is to be done between two steps, by all ranks of a group alike.
class StepCallback {
public:
    virtual ~StepCallback() = default;
    /// Whether the results of a step must be read, so many being done with it.
    virtual bool needs_results(std::int64_t steps_done) const = 0;
    /// Called after a step whose results were read. What it throws ends the training on all ranks.
    /// Collective in the group.
    virtual void after_reading(Trainer& trainer, std::int64_t steps_done) = 0;
};

/// How far a training is.
struct TrainingPosition {
    int epoch = 0;           // from 0, that is under way
    std::int64_t steps = 0;  // done of it
};

struct TrainerSetup {
    const config::Config& config;
    graph::Network& network;                  // training mode, batch: this rank's share
    std::int64_t steps_per_epoch = 0;         // may be 0 for a bootstrap smaller than a batch
    comm::GradientReducer& reducer;           // of the ranks that train the same parameters
    const PipelineShare* pipeline = nullptr;  // null: the group's ranks share a batch, no more
    StepLog* log = nullptr;                   // null: nobody asks for single steps
    const comm::SyncBatchNormGroup* statistics = nullptr;  // of the network; null: of one rank each
    StepCallback* between = nullptr;                       // null: nothing is to be done
    std::string where = {};          // of messages: this rank, such as "rank 3 on node02"
    std::vector<Fault> faults = {};  // of all groups, to be injected
    int group = 0;                   // of this rank, for them
};

/// Trains one base model with the ranks of its group. Every rank constructs one and makes the same
/// calls. Everything given to the constructor outlives it.
class Trainer {
public:
    Trainer(const TrainerSetup& setup, device::Device& device, graph::ParameterStore& store,
            comm::Communicator& group);

    /// Makes one pass over `source`, or after restore() the rest of one. Every run.audit_steps
    /// steps, after `listener` was told of the last, the ranks compare their replicas: all throw
    /// ReplicaDivergence when they differ. When a rank's source fails, all ranks leave after the
    /// same step, the next whose results are read, and throw that failure. Numbers that are not
    /// finite make the ranks compare their replicas, too, and then throw Error(internal) on all:
    /// when the results of a step with such a loss are read, else at the end of the epoch. Only the
    /// first stage of a pipeline, and the first part of its layers, reads the source's batches.
    /// After a failure the communicators are of no more use.
    EpochReport train_epoch(int epoch, data::BatchSource& source,
                            const std::function<void(const StepReport&)>& listener);

    /// Between two steps, before save(): looks whether what the ranks hold may be gone on with.
    /// Throws on all ranks, as train_epoch does, where parameters are not finite or replicas
    /// differ. Collective.
    void examine();
    /// Bytes of the arrays that save() puts for parameters, optimizer states and statistics.
    std::size_t saved_bytes();
    /// Between two steps: what this rank holds of the training, in host memory. Parameters and the
    /// optimizer's states are in that of the first of the ranks that train the same ones alone.
    /// Waits for the device.
    void save(Snapshot& to);
    /// Call it before the first step. Continues after the step at which all ranks called save(),
    /// with train_epoch of position().epoch and a source that begins after position().steps
    /// batches. Throws Error(data) naming the array that does not fit; what was put back by then is
    /// undone by another restore(). To be followed by share_parameters().
    void restore(const Snapshot& from);
    /// Gives the ranks that train the same parameters those, and the states, that the first of them
    /// has. Collective.
    void share_parameters();
    std::int64_t steps_done() const { return steps_done_; }
    TrainingPosition position() const { return {epoch_.number, epoch_.report.steps}; }

    /// Gives all ranks that train the same parameters the mean of their running statistics, which
    /// equals the statistics that one rank would have gathered. Collective; before evaluation.
    void average_statistics();

    /// The last audit, of all that a rank holds. Throws ReplicaDivergence on all ranks. Collective;
    /// after average_statistics.
    void audit_at_the_end() { audit_.at_the_end(steps_done_); }

    const comm::GradientBuckets& buckets() const { return step_->buckets(); }
    MessageAccounting messages() const { return step_->messages(); }
    const ReplicaAudit& audit() const { return audit_; }
    /// Optimizer steps left out since the start because fp16 gradients had overflown.
    std::int64_t skipped_steps() const { return skipped_steps_; }

private:
    /// What one pass has come to.
    struct Epoch {
        int number = 0;
        EpochReport report;
        double seconds_before = 0;  // until `watch` began
        Stopwatch watch;
        double seconds_of_steps = 0;    // of `watch`, at the end of the last step
        std::exception_ptr failure;     // of this rank's source
        std::int64_t unread_steps = 0;  // since the last reading
        double loss_sum = 0;            // over the steps, of their mean losses
    };
    struct LostParameters {
        bool anywhere = false;         // by a rank of the group
        bool by_all_replicas = false;  // by all ranks that train what this one does
    };

    EpochReport train_steps(int epoch, data::BatchSource& source,
                            const std::function<void(const StepReport&)>& listener);
    void begin_epoch(int number);
    void take_step(data::BatchSource& source);
    void name_own_failures(const std::function<void()>& part) const;
    bool must_read(bool is_last) const;
    void end_step(bool is_read);
    void read_results();
    std::vector<std::span<float>> shared_values();
    LostParameters lost_parameters();
    void announce_failure(const Error& error);
    [[noreturn]] void report_divergence(std::int64_t unread_steps);
    void check_parameters(const std::string& when);

    const config::Config& config_;
    device::Device& device_;
    graph::ParameterStore& store_;
    comm::Communicator& group_;
    std::int64_t steps_per_epoch_;
    std::int64_t steps_done_ = 0;
    std::int64_t skipped_steps_ = 0;
    double last_loss_ = std::numeric_limits<double>::quiet_NaN();
    graph::Network& network_;
    comm::Communicator& replicas_;  // of the group, the ranks that train the same parameters
    std::unique_ptr<FaultInjector> injector_;  // null: nothing is injected
    std::unique_ptr<StepRunner> step_;
    StepLog* log_;
    Schedule schedule_;
    std::vector<int> slices_;  // by group rank
    ReplicaAudit audit_;
    StepCallback* between_;
    std::string where_;
    Epoch epoch_;
    bool is_resumed_ = false;  // with epoch_, which another program has begun
};

}  // namespace hpcai::training
