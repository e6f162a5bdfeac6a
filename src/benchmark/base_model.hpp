// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/part_exchange.hpp>
#include <hpcai/comm/statistics_span.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/data/resident_pictures.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/graph/split.hpp>
#include <hpcai/plan/data_sampler.hpp>
#include <hpcai/training/predict.hpp>

#include "run_context.hpp"

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
    /// The training networks, until drop_training(): one, or those of a pipeline's stage, perhaps
    /// of a part of it, one for each micro-batch in flight.
    std::vector<graph::Network*> networks() const;
    /// What the networks have between the parts, to be connected before they run; null where there
    /// are none.
    comm::PartExchange* exchange() { return exchange_.get(); }
    /// The model's, or until collect() the stage's.
    graph::ParameterStore& store() { return *store_; }
    /// Where a model is cut in stages or parts, gives every rank the whole model's parameters and
    /// running statistics in place of its stage's, 8 bytes for each. After drop_training().
    /// Collective in the group.
    void collect(comm::Communicator& group);
    /// Has the whole model of a file in place of what it has, without training networks. Throws as
    /// training::read_weights does.
    void load(const std::filesystem::path& weights);
    /// Of the training network's BatchNorms; to be connected before it runs.
    comm::StatisticsSpan& statistics_span() { return statistics_span_; }
    /// In the device's memory; null unless data.resident_mib asks for them.
    data::ResidentPictures* pictures() { return pictures_.get(); }
    /// Leaves the memory of the training network and of its pictures to the networks that evaluate.
    void drop_training() {
        networks_.clear();
        drop_pictures();
    }
    void drop_pictures() { pictures_.reset(); }

    struct Evaluation {
        training::Predictions predictions;  // for all samples at the group's rank 0, else empty
        data::BadSampleReport bad_samples;  // of this rank's share
    };
    /// Predicts `samples` with the present weights. Collective in the group; a failure on one rank
    /// is thrown on all.
    Evaluation predict(std::shared_ptr<const data::SampleSet> samples, comm::Communicator& group);
    /// The same before drop_training() and collect(), which it does not replace. Takes memory
    /// beside the training's.
    Evaluation predict_in_training(std::shared_ptr<const data::SampleSet> samples,
                                   comm::Communicator& group);

private:
    Evaluation predict_with(graph::ParameterStore& store,
                            std::shared_ptr<const data::SampleSet> samples,
                            comm::Communicator& group);
    void cut();
    void build_networks();

    const Start& start_;
    std::uint32_t number_;
    plan::DataSampler sampler_;
    graph::Graph graph_;                // of what a rank computes at once, not fused
    std::vector<graph::Stage> stages_;  // [slice]; none where the model is whole
    std::unique_ptr<graph::ParameterStore> store_;
    std::unique_ptr<comm::PartExchange> exchange_;
    comm::StatisticsSpan statistics_span_;
    std::vector<std::unique_ptr<graph::Network>> networks_;  // the first one's twins follow
    std::unique_ptr<data::ResidentPictures> pictures_;
};

/// Threads that decode for one rank.
int decode_threads(const Start& start);

}  // namespace hpcai::benchmark
