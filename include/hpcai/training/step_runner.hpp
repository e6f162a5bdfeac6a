// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/step_record.hpp>
#include <hpcai/training/snapshot.hpp>
#include <hpcai/training/step_log.hpp>

namespace hpcai::training {

/// Arguments of a StepRunner. All references must outlive the runner.
struct StepSetup {
    const config::Config& config;
    graph::Network& network;  // in training mode, for a micro-batch or this rank's share of a batch
    device::Device& device;
    graph::ParameterStore& store;
    comm::GradientReducer& reducer;  // over the ranks that train the same parameters
    StepLog* log = nullptr;          // null: no log
    // Called with each bucket's elements before its all-reduce; may be null. Prevents CUDA graphs.
    std::function<void(const comm::Range& elements)> before_all_reduce = nullptr;
};

/// The stage and shard of this rank. All references must outlive the StepRunner.
struct PipelineShare {
    plan::Layout layout;
    // The networks of this rank's stage (graph::partition_stages), one for each micro-batch in
    // flight. They share parameters. The others were built with the first as their `twin`.
    std::vector<graph::Network*> networks;
    comm::Communicator& group;                         // all ranks of the group
    comm::Communicator& replicas;                      // ranks that train the same parameters
    comm::TensorParallelExchange* exchange = nullptr;  // of the networks; unused with one shard
};

/// Results of steps, as read from the device.
struct StepResults {
    double loss_sum = 0;                 // over the samples since results were last read
    std::int64_t samples = 0;            // since results were last read, without padding
    std::uint32_t skipped_steps = 0;     // since the start, because gradients were not finite
    bool has_failed = false;             // a rank failed in the last step
    double loss_scale = 1;               // factor of the mean loss in the backward pass
    bool has_diverged = false;           // a step was skipped, and the loss scale cannot decrease
    std::optional<PhaseSeconds> phases;  // by the device's clock, if the last step was a CUDA graph
};

/// Costs of a rank's messages between pipeline stages and between shards.
struct MessageAccounting {
    std::int64_t steps = 0;
    std::int64_t bytes_sent = 0;
    double wait_seconds = 0;       // waits for other stages, and for all ranks at a step's end
    comm::ShardAccounting shards;  // with one stage, its waits include those at a step's end
};

/// Runs a model's optimizer steps on one rank of the group that trains it. Between steps,
/// parameters may be changed by ParameterStore::write.
class StepRunner {
public:
    virtual ~StepRunner() = default;

    /// Runs a step on this rank's share of a batch. All ranks of the group make the same calls in
    /// the same order. A rank without a batch (null) runs on padding and passes `has_failed`; then
    /// all ranks skip the update.
    virtual void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) = 0;

    /// Waits for the steps that were run and returns their results. Throws failures of the device
    /// or of other ranks. Losses and samples are of this rank; see also make_pipeline_step().
    virtual StepResults read();

    /// Maximum number of steps between reads: run.loss_steps, or if that is 0, the runner's choice.
    std::int64_t steps_between_reads() const { return steps_between_reads_; }

    const comm::GradientBuckets& buckets() const { return buckets_; }

    /// Returns the seconds in which the host did nothing but all-reduces and messages.
    virtual double communication_seconds() const;

    /// Returns zeros unless make_pipeline_step() made the runner.
    virtual MessageAccounting messages() const { return {}; }

    /// Call it after a step whose results were read. Saves the state that affects the next step,
    /// except parameters and optimizer states.
    void save(Snapshot& to);
    /// Call it before a step. Restores the state of save(). Throws Error(data) with the array that
    /// does not fit; some arrays may then have been restored.
    void restore(const Snapshot& from);

protected:
    explicit StepRunner(const StepSetup& setup);

    /// Enqueues the step's learning rate and this rank's failure status. After calls of
    /// ParameterStore::write(), refreshes working copies (Network::prepare_optimizer_copies()).
    void begin_step(double learning_rate, bool has_failed);
    /// Enqueues a change of one of the network's step scalars.
    template <typename T>
    void set_scalar(T device::StepScalars::*number, T value) {
        device_.enqueue_upload(&(network_.step_scalars()->*number),
                               std::as_bytes(std::span(&value, 1)));
    }
    /// Marks the gradients that `call` has completed as ready, and progresses the all-reduces.
    void notify_buckets(const graph::KernelCall& call);
    /// Marks the failure status of begin_step(), which is summed with the gradients, as ready.
    void notify_status() { buckets_.ready(store_.ranges().size()); }

    device::Device& device_;
    graph::Network& network_;
    graph::ParameterStore& store_;
    comm::GradientReducer& reducer_;
    StepLog* log_;
    device::LossScalePolicy loss_scale_;
    std::span<const float> checked_gradients_;  // gradients that must be finite
    std::unique_ptr<device::Update> update_;
    comm::GradientBuckets buckets_;
    std::int64_t steps_between_reads_;
    std::int64_t samples_since_read_ = 0;

private:
    std::uint32_t skipped_before_ = 0;            // skipped_steps when results were last read
    std::optional<std::uint64_t> copied_writes_;  // parameter_writes() at the last refresh
};

/// Makes a runner of optimizer steps for one stage. A step runs the forward and backward passes of
/// all micro-batches in the order of plan::pipeline_tasks, together with the group's other stages.
/// Then it all-reduces the gradients over the replicas and updates the parameters. Gradients are
/// added in fp32 in the order of the micro-batches, whatever the schedule. BatchNorm statistics do
/// not span micro-batches, and each micro-batch updates the running statistics. Only the ranks with
/// the first shard of the first stage use batches. They send the samples to the stage's other
/// shards; each shard sends the labels to its counterpart in the last stage. Activations and their
/// gradients pass through host memory, in the type and layout of the networks. StepRunner::read()
/// is collective in the group and returns losses and samples of all its ranks. `setup.network` is
/// share.networks[0].
std::unique_ptr<StepRunner> make_pipeline_step(StepSetup setup, const PipelineShare& share);

/// Runs optimizer steps on the current inputs of a network: refresh of the working copies, forward,
/// backward with all-reduces, update. The third step is captured as a CUDA graph, which later steps
/// replay, if device.recording is set, before_all_reduce is null, and the device (with several
/// ranks also the reducer) supports capture. The host then waits only to read results and in
/// GradientReducer::end_step().
class TrainingStep final : public StepRunner {
public:
    explicit TrainingStep(const StepSetup& setup);

    /// Enqueues a step. All ranks of the group make the same calls in the same order. A rank
    /// without a batch runs on any inputs and passes `has_failed`; then all ranks skip the update.
    void run(double learning_rate, bool has_failed = false);

    void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) override;
    StepResults read() override;

private:
    void enqueue();
    void mark() {
        if (timeline_ != nullptr) timeline_->mark();
    }

    bool can_be_recorded_;
    std::int64_t steps_ = 0;
    std::unique_ptr<device::Timeline> timeline_;  // times the phases of the CUDA graph
    std::unique_ptr<device::Recording> recording_;
    bool has_run_recording_ = false;  // since results were last read
};

/// Returns the optimizer of a network's parameters and of their working copies, which kernels read
/// in the network's compute type. With LARS and LAMB, each filter tensor and weight matrix has its
/// own trust ratio. Only filters and weight matrices have weight decay, unless
/// training.weight_decay_on_norm_and_bias is set.
device::Optimizer plan_optimizer(const graph::Network& network, const graph::ParameterStore& store,
                                 const config::TrainingConfig& training);

/// Returns the store's buffers and the network's step scalars, for an optimizer.
device::OptimizerTensors optimizer_tensors(graph::Network& network, graph::ParameterStore& store);

}  // namespace hpcai::training
