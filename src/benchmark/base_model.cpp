// SPDX-License-Identifier: Apache-2.0
#include "base_model.hpp"

#include <algorithm>

#include <hpcai/base/rounding.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/graph/fuse_for.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/tensor/half.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/stage_parameters.hpp>
#include <hpcai/training/weights_file.hpp>

#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

/// Left of a GPU's memory beside pictures: NCCL's buffers, sums of gradients that it carries,
/// kernels that are loaded when they are first used and the recorded step come later.
constexpr std::size_t kSpareBytes = std::size_t{1} << 30;

/// Rows of a training batch that a rank computes at once.
int share_of(const Start& start) {
    return start.controller.layout().rows(start.config.training.batch_size);
}

/// Rows of an evaluation batch: enough for full speed, little enough for a small set and, where
/// samples are large, no more than memory has held in training.
int most_evaluation_rows(const Start& start) {
    constexpr int kRows = 32;
    if (task_of(start.config.workload) == config::Task::classification) return kRows;
    return std::min(kRows, share_of(start));
}

graph::Graph make_share(const Start& start) {
    const config::TrainingConfig& training = start.config.training;
    const int share = share_of(start);
    return models::make_model(start.config, {share, training.batch_norm_samples.value_or(share),
                                             start.samples.training->format().dtype});
}

/// For a training without fp32 masters, which the first step would find rounded otherwise.
void round_to_f16(graph::ParameterStore& store) {
    std::vector<float> values = store.read(store.parameters());
    for (float& value : values) value = tensor::from_f16(tensor::to_f16(value));
    store.write(values, store.parameters());
}

}  // namespace

int decode_threads(const Start& start) {
    return start.config.data.decode_threads > 0 ? start.config.data.decode_threads
                                                : std::max(1, start.threads);
}

BaseModel::BaseModel(const Start& start)
    : start_(start),
      number_(static_cast<std::uint32_t>(start.place.group)),
      sampler_(start.config.bagging, start.config.run.seed,
               static_cast<std::uint32_t>(start.samples.training->samples())),
      graph_(make_share(start)),
      statistics_span_(plan::statistics_ranks(start.config.training, start.controller.layout())) {
    const config::TrainingConfig& training = start.config.training;
    const int states = config::optimizer_states(training.optimizer);
    const bool is_whole = start.controller.layout().slices() == 1;
    store_ = std::make_unique<graph::ParameterStore>(graph_, *start.device, is_whole ? states : 0);
    training::initialize(graph_, start.config.run.seed, number_, *store_);
    if (!training.initial_weights.empty()) {
        training::read_initial_weights(training.initial_weights, graph_, *store_);
    }
    if (start.precision.is_pure) round_to_f16(*store_);
    if (!is_whole) cut();
    build_networks();
    if (start.config.data.resident_mib > 0) {
        pictures_ = std::make_unique<data::ResidentPictures>(
            *start.device, data::ResidentPictures::Room{
                               static_cast<std::size_t>(start.config.data.resident_mib) << 20,
                               share_of(start), kSpareBytes});
    }
}

/// Leaves this rank the parameters of its stage and part.
void BaseModel::cut() {
    const plan::Layout& layout = start_.controller.layout();
    const config::TrainingConfig& training = start_.config.training;
    stages_ =
        graph::cut(training.fusion ? graph::fuse(graph_) : graph_, layout.stages, layout.parts);
    const auto index = static_cast<std::size_t>(layout.slice_of(start_.place.group_rank));
    if (layout.parts > 1) {
        exchange_ = std::make_unique<comm::PartExchange>(layout.parts,
                                                         layout.part_of(start_.place.group_rank));
    }
    auto mine = std::make_unique<graph::ParameterStore>(
        stages_[index].graph, *start_.device, config::optimizer_states(training.optimizer));
    training::copy_stage(stages_[index], *store_, *mine);
    store_ = std::move(mine);
}

void BaseModel::build_networks() {
    const config::Config& config = start_.config;
    const plan::Layout& layout = start_.controller.layout();
    const auto slice = static_cast<std::size_t>(layout.slice_of(start_.place.group_rank));
    const graph::Graph& graph = stages_.empty() ? graph_ : stages_[slice].graph;
    const graph::NetworkOptions options{
        .compute = start_.precision.compute,
        .tf32 = start_.precision.tf32,
        .int8 = start_.precision.int8,
        .rounding = {.seed = start_.config.run.seed,
                     .model = number_,
                     .rank = static_cast<std::uint32_t>(start_.place.group_rank)},
        .statistics_sum = &statistics_span_,
        .exchange = exchange_.get()};
    networks_.push_back(std::make_unique<graph::Network>(
        config.training.fusion ? graph::fuse_for(graph, *start_.device, options) : graph,
        *start_.device, *store_, options));
    const int in_flight = plan::micro_batches_in_flight(
        plan::pipeline_tasks(config.parallel.schedule, layout.stages,
                             layout.stage_of(start_.place.group_rank), layout.micro_batches));
    while (static_cast<int>(networks_.size()) < in_flight) {
        networks_.push_back(std::make_unique<graph::Network>(*networks_.front(), *store_));
    }
}

std::vector<graph::Network*> BaseModel::networks() const {
    std::vector<graph::Network*> networks;
    for (const auto& network : networks_) networks.push_back(network.get());
    return networks;
}

void BaseModel::collect(comm::Communicator& group) {
    if (stages_.empty()) return;
    auto whole = std::make_unique<graph::ParameterStore>(graph_, *start_.device, 0);
    training::collect_stages(group, start_.controller.layout(), stages_, *store_, *whole);
    store_ = std::move(whole);
}

void BaseModel::load(const std::filesystem::path& weights) {
    drop_training();
    auto whole = std::make_unique<graph::ParameterStore>(graph_, *start_.device, 0);
    training::read_weights(weights, graph_, *whole);
    store_ = std::move(whole);
}

std::int64_t BaseModel::training_flops_per_sample() const {
    const metrics::FlopsLedger ledger(models::make_model(start_.config));
    return ledger.training_per_sample(metrics::kOfficialLedger);
}

BaseModel::Evaluation BaseModel::predict(std::shared_ptr<const data::SampleSet> samples,
                                         comm::Communicator& group) {
    return predict_with(*store_, std::move(samples), group);
}

BaseModel::Evaluation BaseModel::predict_in_training(std::shared_ptr<const data::SampleSet> samples,
                                                     comm::Communicator& group) {
    if (stages_.empty()) return predict(std::move(samples), group);
    graph::ParameterStore whole(graph_, *start_.device, 0);
    training::collect_stages(group, start_.controller.layout(), stages_, *store_, whole);
    return predict_with(whole, std::move(samples), group);
}

BaseModel::Evaluation BaseModel::predict_with(graph::ParameterStore& store,
                                              std::shared_ptr<const data::SampleSet> samples,
                                              comm::Communicator& group) {
    const std::int64_t block = ceil_div(samples->samples(), std::max(1, group.size()));
    data::SourceSettings settings;
    settings.batch_size =
        static_cast<int>(std::clamp<std::int64_t>(block, 1, most_evaluation_rows(start_)));
    settings.group_rank = group.rank();
    settings.degree = group.size();
    settings.prefetch_batches = start_.config.data.prefetch_batches;
    settings.decode_threads = decode_threads(start_);
    settings.on_bad_sample = start_.config.data.on_bad_sample;
    Evaluation evaluation;
    comm::run_together(group, [&] {
        data::EvaluationSource source(samples, settings);
        source.begin();
        const graph::Graph graph = models::make_inference_model(
            start_.config, {.batch = settings.batch_size, .dtype = samples->format().dtype});
        const graph::NetworkOptions options{.mode = device::Mode::inference,
                                            .compute = start_.precision.compute,
                                            .tf32 = start_.precision.tf32};
        graph::Network network(
            start_.config.training.fusion ? graph::fuse_for(graph, *start_.device, options) : graph,
            *start_.device, store, options);
        evaluation.predictions =
            training::predict(network, source, make_workload(start_)->outputs_per_sample());
        evaluation.bad_samples = source.bad_samples();
    });
    evaluation.predictions = training::gather(group, std::move(evaluation.predictions));
    return evaluation;
}

}  // namespace hpcai::benchmark
