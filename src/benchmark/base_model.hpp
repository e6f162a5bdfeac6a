// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/statistics_span.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/data/resident_pictures.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/training/predict.hpp>

#include "start.hpp"

namespace hpcai::benchmark {

/// One of the M models with its bootstrap, on one rank of the group that trains it. What is made
/// here needs no group yet, so that it belongs to the start-up.
class BaseModel {
public:
    /// Builds the training network and its initial weights. Throws Error(data) when
    /// training.initial_weights does not fit, Error(usage) when data.resident_mib does not,
    /// Error(internal) when memory does not suffice.
    explicit BaseModel(const Start& start);

    std::uint32_t number() const { return number_; }
    const plan::DataSampler& sampler() const { return sampler_; }
    const graph::Graph& graph() const { return graph_; }
    /// FLOPs of one sample's training step by the official ledger, table3.
    std::int64_t training_flops_per_sample() const;
    /// The training network, until drop_training().
    graph::Network& network() { return *network_; }
    graph::ParameterStore& store() { return store_; }
    /// Of the training network's BatchNorms; to be connected before it runs.
    comm::StatisticsSpan& statistics_span() { return statistics_span_; }
    /// In the device's memory; null unless data.resident_mib asks for them.
    data::ResidentPictures* pictures() { return pictures_.get(); }
    /// Leaves the memory of the training network and of its pictures to the networks that evaluate.
    void drop_training() {
        network_.reset();
        pictures_.reset();
    }

    struct Evaluation {
        training::Predictions predictions;  // for all samples at the group's rank 0, else empty
        data::BadSampleReport bad_samples;  // of this rank's share
    };
    /// Predicts `samples` with the present weights. Collective in the group; a failure on one rank
    /// is thrown on all.
    Evaluation predict(std::shared_ptr<const data::SampleSet> samples, comm::Communicator& group);

private:
    const Start& start_;
    std::uint32_t number_;
    plan::DataSampler sampler_;
    graph::Graph graph_;  // of this rank's share of a batch, not fused
    graph::ParameterStore store_;
    comm::StatisticsSpan statistics_span_;
    std::unique_ptr<graph::Network> network_;
    std::unique_ptr<data::ResidentPictures> pictures_;
};

/// Threads that decode for one rank.
int decode_threads(const Start& start);

}  // namespace hpcai::benchmark
