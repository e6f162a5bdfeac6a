// SPDX-License-Identifier: Apache-2.0
#include "predict.hpp"

#include <algorithm>

#include <hpcai/base/rounding.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/graph/network.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::group {

data::SourceSettings source_settings(const config::DataConfig& data, int threads) {
    data::SourceSettings settings;
    settings.prefetch_batches = data.prefetch_batches;
    settings.decode_threads = data.decode_threads > 0 ? data.decode_threads : std::max(1, threads);
    settings.on_bad_sample = data.on_bad_sample;
    return settings;
}

Evaluation predict(const context::RunContext& context, const context::Resources& resources,
                   const PredictingModel& model, std::shared_ptr<const data::SampleSet> samples,
                   comm::Communicator& group) {
    const config::Config& config = context.config;
    const std::int64_t block = ceil_div(samples->samples(), std::max(1, group.size()));
    data::SourceSettings settings = source_settings(config.data, resources.threads);
    const int training_rows =
        context.controller.layout().micro_batch_size(config.training.batch_size);
    settings.batch_size = static_cast<int>(
        std::clamp<std::int64_t>(block, 1, models::evaluation_rows(config, training_rows)));
    settings.share = group.rank();
    settings.shares = group.size();
    Evaluation evaluation;
    comm::collective_try(group, [&] {
        data::EvaluationSource source(samples, settings);
        source.begin();
        const graph::Graph graph = morphs::apply_all(
            models::make_inference_model(
                config, {.batch = settings.batch_size, .dtype = samples->format().dtype}),
            model.edits);
        const graph::NetworkOptions options{.mode = device::Mode::inference,
                                            .compute = resources.precision.compute,
                                            .tf32 = resources.precision.tf32};
        device::Device& device = *resources.device;
        graph::Network network(
            config.training.fusion ? graph::fuse_for_device(graph, device, options) : graph, device,
            model.store, options);
        const auto evaluator = workloads::make_evaluator(config, resources.samples);
        evaluation.predictions =
            training::predict(network, source, evaluator->outputs_per_sample());
        evaluation.bad_samples = source.bad_samples();
    });
    evaluation.predictions = training::gather(group, std::move(evaluation.predictions));
    return evaluation;
}

}  // namespace hpcai::group
