// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/sync_batch_norm_group.hpp>
#include <hpcai/comm/tensor_parallel_exchange.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/graph/shard.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/training/stage_parameters.hpp>

#include "training/networks.hpp"
#include "world.hpp"

/// A model trained in stages and shards by the ranks of a group, and the results of training.
namespace hpcai::training {

inline constexpr int kBatch = 64;  // of the model
inline constexpr std::int64_t kSteps = 4;

struct Shape {
    int stages = 1;
    int micro_batches = 1;
    config::PipelineSchedule schedule = config::PipelineSchedule::one_forward_one_backward;
    tensor::DType compute = tensor::DType::f32;
    config::Optimizer optimizer = config::Optimizer::sgd;
    comm::AllReduceAlgorithm algorithm = comm::AllReduceAlgorithm::all_reduce;
    comm::WireFormat format = comm::WireFormat::fp32;
    int statistics_ranks = 1;
    bool shares_batch_alone = false;  // no stages and no micro-batches: parallel.mode data
    std::function<void()> before_statistics = {};
    int shards = 1;
    // Makes the graph of a micro-batch whose statistics are those of so many samples.
    std::function<graph::Graph(std::int64_t, std::int64_t)> graph = small_graph;
};

/// Statistics of several ranks; a test runs a function before each exchange.
class GuardedStatistics final : public device::SyncBatchNormReducer {
public:
    GuardedStatistics(comm::SyncBatchNormGroup& span, std::function<void()> before)
        : span_(span), before_(std::move(before)) {}
    int ranks() const override { return span_.ranks(); }
    void sum(std::span<double> values) override {
        if (before_) before_();
        span_.sum(values);
    }

private:
    comm::SyncBatchNormGroup& span_;
    std::function<void()> before_;
};

/// The results of training to compare, equal on all ranks.
struct Trained {
    std::vector<double> losses;  // of the model's whole batch, by step
    std::vector<float> parameters;
    std::vector<float> statistics;
    double mean_loss = 0;
    std::vector<std::uint64_t> hashes;  // of this rank's parameters, before they were collected
                                        // by this rank and its replicas
    MessageAccounting messages;
};

/// One rank of a pipeline over all ranks of a group.
class PipelinedModel {
public:
    PipelinedModel(comm::Communicator& group, const Shape& shape, int audit_steps = 0)
        : config(small_config(kBatch, 1)),
          layout{group.size(), 1, group.size(), shape.stages, shape.micro_batches, shape.shards},
          device(device::make_cpu_device({})),
          model_graph(shape.graph(layout.micro_batch_size(kBatch),
                                  shape.statistics_ranks * layout.micro_batch_size(kBatch))),
          model(model_graph, *device, 2),
          slices(graph::partition_stages(graph::fuse(model_graph), shape.stages, shape.shards)),
          mine(slices[static_cast<std::size_t>(layout.partition_of(group.rank()))]),
          store(mine.graph, *device, 2),
          group_(group),
          replicas(group.split(layout.partition_of(group.rank()), group.rank())),
          reducer(comm::make_point_to_point_reducer(
              shape.shares_batch_alone ? group : *replicas, nullptr,
              {.algorithm = shape.algorithm,
               .format = shape.format,
               .node_of_rank = std::vector<int>(static_cast<std::size_t>(replicas->size()))})),
          span(shape.statistics_ranks),
          statistics(span, shape.before_statistics),
          exchange(shape.shards, layout.model_shard_of(group.rank())) {
        config.communication.bucket_mib = 1.0 / 256;  // several
        span.connect(shape.shares_batch_alone ? group : *replicas,
                     std::vector<int>(static_cast<std::size_t>(replicas->size())));
        config.parallel.mode = config::ParallelMode::pipeline;
        config.parallel.micro_batches = shape.micro_batches;
        config.parallel.schedule = shape.schedule;
        config.training.optimizer = shape.optimizer;
        config.run.audit_steps = audit_steps;
        initialize(model_graph, config.run.seed, 0, model);
        copy_stage(mine, model, store);
        connect_parts();
        const graph::NetworkOptions options{.compute = shape.compute,
                                            .sync_batch_norm_reducer = &statistics,
                                            .exchange = shape.shards > 1 ? &exchange : nullptr};
        networks.push_back(std::make_unique<graph::Network>(
            graph::fuse_for_device(mine.graph, *device, options), *device, store, options));
        const int in_flight = plan::micro_batches_in_flight(plan::pipeline_tasks(
            shape.schedule, layout.stages, layout.stage_of(group.rank()), layout.micro_batches));
        while (static_cast<int>(networks.size()) < in_flight) {
            networks.push_back(std::make_unique<graph::Network>(*networks.front(), store));
        }
        std::vector<graph::Network*> pointers;
        for (const auto& network : networks) pointers.push_back(network.get());
        share = std::make_unique<PipelineShare>(
            PipelineShare{layout, pointers, group, *replicas, &exchange});
        trainer = std::make_unique<Trainer>(
            TrainerSetup{config, *networks.front(), kSteps, *reducer,
                         shape.shares_batch_alone ? nullptr : share.get()},
            *device, store, group);
    }

    /// Returns the source of this rank's replica.
    ToySource source() const {
        const int rows = layout.micro_batch_size(kBatch) * layout.micro_batches;
        ToySource source(rows, kSteps);
        source.set_place(layout.replica_of(group_.rank()) * rows, kBatch);
        return source;
    }

    Trained train() {
        ToySource batches = source();
        return train(batches);
    }
    Trained train(data::BatchSource& batches) {
        Trained result;
        const EpochReport report = trainer->train_epoch(
            0, batches, [&](const StepReport& step) { result.losses.push_back(step.loss); });
        result.mean_loss = report.mean_loss;
        result.messages = trainer->messages();
        trainer->average_statistics();
        const std::uint64_t hash = device->hash(store.parameters());
        result.hashes.resize(static_cast<std::size_t>(replicas->size()));
        replicas->all_gather(std::as_bytes(std::span(&hash, 1)),
                             std::as_writable_bytes(std::span(result.hashes)));
        all_gather_stages(group_, layout, slices, store, model);
        result.parameters = model.read(model.parameters());
        result.statistics = model.read(model.statistics());
        return result;
    }

    /// Connects the neighbouring ranks that have the other shards.
    void connect_parts() {
        const int first = group_.rank() / layout.shards * layout.shards;
        std::vector<int> ranks(static_cast<std::size_t>(layout.shards));
        std::iota(ranks.begin(), ranks.end(), first);
        exchange.connect(group_, ranks);
    }

    config::Config config;
    plan::Layout layout;
    std::unique_ptr<device::Device> device;
    graph::Graph model_graph;
    graph::ParameterStore model;
    std::vector<graph::Stage> slices;
    const graph::Stage& mine;
    graph::ParameterStore store;
    comm::Communicator& group_;
    std::unique_ptr<comm::Communicator> replicas;
    std::unique_ptr<comm::GradientReducer> reducer;
    comm::SyncBatchNormGroup span;
    GuardedStatistics statistics;
    comm::TensorParallelExchange exchange;
    std::vector<std::unique_ptr<graph::Network>> networks;
    std::unique_ptr<PipelineShare> share;
    std::unique_ptr<Trainer> trainer;
};

inline Trained train(comm::Communicator& group, const Shape& shape) {
    return PipelinedModel(group, shape).train();
}

/// Trains on one rank with the product's gradient accumulation.
inline Trained train_alone(Shape shape, int data_degree = 1) {
    const auto self = comm::make_self_communicator();
    shape.stages = shape.shards = 1;
    shape.micro_batches *= data_degree;
    return train(*self, shape);
}

/// Returns the largest difference relative to the length of `want`.
inline double difference(const std::vector<float>& got, const std::vector<float>& want) {
    EXPECT_EQ(got.size(), want.size());
    double largest = 0, length = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(got[i]) - want[i]));
        length += static_cast<double>(want[i]) * want[i];
    }
    return largest / std::sqrt(length);
}

inline void expect_same_training(const Trained& got, const Trained& want, double tolerance) {
    EXPECT_LT(difference(got.parameters, want.parameters), tolerance);
    ASSERT_EQ(got.losses.size(), want.losses.size());
    for (std::size_t step = 0; step < want.losses.size(); ++step) {
        EXPECT_NEAR(got.losses[step], want.losses[step], 10 * tolerance) << step;
    }
    EXPECT_NEAR(got.mean_loss, want.mean_loss, 10 * tolerance);
}

/// Returns the numbers of stages into which this world can be divided.
inline std::vector<int> stage_counts() {
    constexpr int kStagesOfModel = 5;
    std::vector<int> counts;
    for (int stages = 1; stages <= kStagesOfModel; ++stages) {
        const int ranks = mpi_tests::world().everyone.size();
        // With four micro-batches.
        const bool shares_batch = ranks % stages == 0 && kBatch % (4 * (ranks / stages)) == 0;
        if (shares_batch) counts.push_back(stages);
    }
    return counts;
}

/// Returns communicators of the first `ranks` ranks, of the next ones, and so on.
inline std::unique_ptr<comm::Communicator> split_in_runs(int ranks) {
    comm::Communicator& everyone = mpi_tests::world().everyone;
    return everyone.split(everyone.rank() / ranks, everyone.rank());
}

inline bool all_finite(std::span<const float> values) {
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
}

}  // namespace hpcai::training
