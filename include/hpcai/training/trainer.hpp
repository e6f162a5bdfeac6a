// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/training/faults.hpp>
#include <hpcai/training/replica_audit.hpp>
#include <hpcai/training/schedule.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// Training progress that a rank knows without communication after it has enqueued a step.
struct StepReport {
    std::int64_t step = 0;   // steps done, of all epochs
    std::int64_t steps = 0;  // planned, of all epochs
    int epoch = 0;           // from 0
    // Mean over this rank's samples in the steps whose results were read last. With a pipeline,
    // shards or micro-batches: over the group's samples. NaN: no results were read yet.
    double loss = 0;
    std::int64_t samples = 0;  // of this step, over all ranks of the group
    bool is_read = false;      // the step's results were read, so the device has completed it
    int epochs = 0;            // planned; 0: workload.epochs
};

struct EpochReport {
    std::int64_t steps = 0;
    std::int64_t samples = 0;  // over all ranks of the group
    double seconds = 0;
    double mean_loss = 0;  // over all ranks
};

/// Thrown when gradients or parameters are not finite although all replicas agree.
class DivergedTraining : public Error {
public:
    explicit DivergedTraining(const std::string& message) : Error(ExitCode::internal, message) {}
};

class Trainer;

/// Work between two steps that all ranks of a group do together.
class StepCallback {
public:
    virtual ~StepCallback() = default;
    /// Whether results must be read after `steps_done` steps.
    virtual bool must_read_results(std::int64_t steps_done) const = 0;
    /// Called after results were read. An exception ends the training on all ranks. Collective.
    virtual void after_results_read(Trainer& trainer, std::int64_t steps_done) = 0;
};

/// Progress of a training run.
struct TrainingPosition {
    int epoch = 0;           // current epoch, from 0
    std::int64_t steps = 0;  // steps done in the epoch
};

struct TrainerSetup {
    const config::Config& config;
    graph::Network& network;                  // as StepSetup::network
    std::int64_t steps_per_epoch = 0;         // 0: the bootstrap sample is smaller than a batch
    comm::GradientReducer& reducer;           // over the ranks that train the same parameters
    const PipelineShare* pipeline = nullptr;  // null: data parallelism only
    StepLog* log = nullptr;                   // null: no log
    // all-reduces BatchNorm statistics; null: each rank has its own statistics
    const comm::SyncBatchNormGroup* sync_batch_norm = nullptr;
    StepCallback* step_callback = nullptr;  // null: none
    std::string rank_name = {};             // for messages, such as "rank 3 on node02"
    std::vector<Fault> faults = {};         // of all groups; their steps are numbered as in `log`
    int group = 0;                          // of this rank
    // Steps and epochs of models that the group has trained before; `log` counts them, too.
    std::int64_t earlier_steps = 0;
    int earlier_epochs = 0;
};

/// Trains one base model. All ranks of its group make the same calls. References must outlive it.
class Trainer {
public:
    Trainer(const TrainerSetup& setup, device::Device& device, graph::ParameterStore& store,
            comm::Communicator& group);

    /// Trains one epoch on `source`, or after restore() the rest of an epoch. Calls `listener`
    /// after each step. The ranks compare their replicas every run.audit_steps steps, after
    /// `listener`; if replicas differ, all ranks throw ReplicaDivergence. If a rank's source fails,
    /// all ranks throw its failure after the next step whose results are read. If gradients are not
    /// finite although the loss scale cannot decrease, or a parameter is not finite at the end of
    /// the epoch, the ranks compare their replicas and all throw DivergedTraining. Only ranks with
    /// the first shard of the first stage use the batches of `source`; all sources have the same
    /// number of batches. After a failure, the communicators can be used only in these cases:
    /// * The group has one rank.
    /// * Each rank trains the whole model, and the failure is DivergedTraining or a
    ///   comm::AgreedError, such as that of a source.
    EpochReport train_epoch(int epoch, data::BatchSource& source,
                            const std::function<void(const StepReport&)>& listener);

    /// Call it between two steps, before save(). Throws on all ranks, as train_epoch does, if a
    /// parameter is not finite or replicas differ. Collective.
    void check_state();
    /// Returns the bytes of the parameters, optimizer states and statistics that save() stores.
    std::size_t saved_bytes();
    /// Call it after a step whose results were read. Copies this rank's training state to host
    /// memory. Only the first of the ranks that train the same parameters saves parameters and
    /// optimizer states. Waits for the device.
    void save(Snapshot& to);
    /// Call it before the first step. Restores the state of save(). Then call
    /// broadcast_parameters() and train_epoch for position().epoch, with a source that begins after
    /// position().steps batches. Throws Error(data) with the array that does not fit; another
    /// restore() then overwrites the partly restored state.
    void restore(const Snapshot& from);
    /// Copies parameters and optimizer states from the first replica to the others. Collective.
    void broadcast_parameters();
    std::int64_t steps_done() const { return steps_done_; }
    TrainingPosition position() const { return {epoch_.number, epoch_.report.steps}; }

    /// Averages the running statistics, which each rank has updated from its own samples, over the
    /// ranks that train the same parameters. Collective; call it before an evaluation.
    void average_statistics();

    /// Compares the replicas' parameters, optimizer states and statistics. If they differ, throws
    /// ReplicaDivergence on all ranks. Collective; call it after average_statistics.
    void audit_final_state() { audit_.audit_final_state(steps_done_); }

    const comm::GradientBuckets& buckets() const { return step_->buckets(); }
    MessageAccounting messages() const { return step_->messages(); }
    const ReplicaAudit& audit() const { return audit_; }
    /// Returns the number of optimizer steps without an update, because gradients were not finite.
    std::int64_t skipped_steps() const { return skipped_steps_; }

private:
    struct Epoch {
        int number = 0;
        EpochReport report;
        double seconds_before = 0;  // time of the epoch before `watch` started
        Stopwatch watch;
        double steps_seconds = 0;       // reading of `watch` at the end of the last step
        std::exception_ptr failure;     // of this rank's source
        std::int64_t unread_steps = 0;  // since results were last read
        double loss_sum = 0;            // sum of the steps' mean losses
    };
    struct NonFiniteParameters {
        bool on_any_rank = false;      // of the group
        bool on_all_replicas = false;  // on all ranks that train the same parameters
    };

    EpochReport train_steps(int epoch, data::BatchSource& source,
                            const std::function<void(const StepReport&)>& listener);
    bool is_agreed(const std::exception& error) const;
    void begin_epoch(int number);
    void run_step(data::BatchSource& source);
    void add_name_to_failures(const std::function<void()>& work) const;
    bool must_read(bool is_last) const;
    void log_step(bool is_read);
    void read_results();
    std::vector<std::span<float>> shared_values();
    NonFiniteParameters non_finite_parameters();
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
    comm::Communicator& replicas_;             // the ranks that train the same parameters
    std::unique_ptr<FaultInjector> injector_;  // null: no faults
    std::unique_ptr<StepRunner> step_;
    StepLog* log_;
    std::int64_t earlier_steps_;
    int earlier_epochs_;
    Schedule schedule_;
    std::vector<int> shards_;  // by group rank
    ReplicaAudit audit_;
    StepCallback* step_callback_;
    std::string rank_name_;
    Epoch epoch_;
    bool is_resumed_ = false;  // epoch_ was restored, and its next step has not begun
};

}  // namespace hpcai::training
