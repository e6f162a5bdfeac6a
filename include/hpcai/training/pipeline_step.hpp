// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/training/step_log.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// What this rank is in its group's pipeline, and which part. Everything outlives what is made from
/// it.
struct PipelineShare {
    plan::Layout layout;
    // Of this rank's stage (graph::cut) and of one micro-batch: as many as are in flight in its
    // list of tasks, twins of the first, which is the network of the setup.
    std::vector<graph::Network*> networks;
    comm::Communicator& group;     // all stages and parts
    comm::Communicator& replicas;  // the ranks that train this one's parameters
    comm::TensorParallelExchange* exchange =
        nullptr;  // of the networks; unused where there are no parts
};

/// Everything outlives what is made from it.
struct PipelineSetup {
    const config::Config& config;
    device::Device& device;
    graph::ParameterStore& store;    // of the stage
    comm::GradientReducer& reducer;  // over the replicas
    const PipelineShare& share;
    StepLog* log = nullptr;  // of the steps
    // Called with the elements of each bucket of gradients before its sum. Null: nobody is.
    std::function<void(const comm::Range& elements)> before_sum = nullptr;
};

/// One optimizer step of a stage, in micro-batches, together with the group's other stages: each
/// forward and backward in the order of plan::pipeline_tasks, then the sum of gradients over the
/// replicas and the update. Gradients are added in fp32 in the order of the micro-batches, whatever
/// the schedule; BatchNorm takes statistics of each micro-batch and updates its running ones once
/// for each, in order. Only the first stage's ranks read batches, whose labels they send to the
/// last; where they have parts, only the first of these does, which hands its samples to the
/// others. Activations and their gradients go through host memory, in the type and layout in which
/// the networks keep them.
class PipelineStep final : public StepRunner {
public:
    explicit PipelineStep(const PipelineSetup& setup);
    ~PipelineStep() override;

    void run_batch(const data::Batch* batch, double learning_rate, bool has_failed) override;
    /// Collective in the group; losses and samples are of all its ranks.
    StepResults read() override;
    std::int64_t steps_between_readings() const override;
    const comm::GradientBuckets& buckets() const override;
    MessageAccounting messages() const override;
    double communication_seconds() const override;
    void save(Snapshot& to) override;
    void restore(const Snapshot& from) override;

private:
    class Worker;
    std::unique_ptr<Worker> worker_;
};

}  // namespace hpcai::training
