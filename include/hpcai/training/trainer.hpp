// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include <hpcai/comm/gradient_buckets.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/training/replica_audit.hpp>
#include <hpcai/training/schedule.hpp>

namespace hpcai::training {

/// SGD with momentum over the flat buffers; weight decay leaves normalizations and biases alone
/// unless training.weight_decay_on_norm_and_bias.
class Optimizer {
public:
    Optimizer(const graph::Graph& graph, const graph::ParameterStore& store,
              const config::TrainingConfig& training);
    /// One step on the store's gradients.
    void step(double learning_rate, device::Device& device, graph::ParameterStore& store) const;

private:
    struct Part {
        graph::Range elements;
        bool decays = false;
    };
    std::vector<Part> parts_;
    device::SgdStep settings_;
};

/// What is known after a step, without any communication.
struct StepReport {
    std::int64_t step = 0;     // done, of all epochs
    std::int64_t steps = 0;    // of all epochs
    int epoch = 0;             // from 0
    double loss = 0;           // mean over this rank's samples
    std::int64_t samples = 0;  // of the step, all ranks of the group
};

struct EpochReport {
    std::int64_t steps = 0;
    std::int64_t samples = 0;  // all ranks of the group
    double seconds = 0;
    double mean_loss = 0;  // over all ranks
};

struct TrainerSetup {
    const config::Config& config;
    graph::Network& network;           // training mode, batch: this rank's share
    std::int64_t steps_per_epoch = 0;  // may be 0 for a bootstrap smaller than a batch
};

/// Trains one base model with the ranks of its group. Every rank constructs one and makes the same
/// calls. Everything given to the constructor outlives it.
class Trainer {
public:
    Trainer(const TrainerSetup& setup, device::Device& device, graph::ParameterStore& store,
            comm::Communicator& group);

    /// One pass over `source`. Every run.audit_steps steps, after `listener` was told of the last,
    /// the ranks compare their replicas: all throw ReplicaDivergence when they differ. When a
    /// rank's source fails, all ranks leave after the same step and throw that failure. Numbers
    /// that are not finite make the ranks compare their replicas, too, and then throw
    /// Error(internal) on all: after the step when they reach the loss, else at the end of the
    /// epoch.
    EpochReport train_epoch(int epoch, data::BatchSource& source,
                            const std::function<void(const StepReport&)>& listener);

    /// Gives all ranks the mean of their running statistics, which equals the statistics that one
    /// rank would have gathered. Collective; before evaluation.
    void average_statistics();

    /// The last audit, of all that a rank holds. Throws ReplicaDivergence on all ranks. Collective;
    /// after average_statistics.
    void audit_at_the_end() { audit_.at_the_end(steps_done_); }

    const comm::GradientBuckets& buckets() const { return buckets_; }
    const ReplicaAudit& audit() const { return audit_; }

private:
    void compute_gradients(const data::Batch& batch);
    double mean_loss(const data::Batch& batch);
    std::int64_t ranks_that_lost_parameters();
    void check_gradients(std::int64_t step);
    void check_parameters(int epoch);

    const config::Config& config_;
    device::Device& device_;
    graph::ParameterStore& store_;
    comm::Communicator& group_;
    std::int64_t steps_per_epoch_;
    std::int64_t steps_done_ = 0;
    graph::Network& network_;
    Optimizer optimizer_;
    Schedule schedule_;
    comm::GradientBuckets buckets_;
    ReplicaAudit audit_;
    std::vector<float> losses_;  // of this rank's rows
};

}  // namespace hpcai::training
