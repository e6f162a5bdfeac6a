// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/group/completed_group.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/workloads/workload.hpp>

#include "epoch_source.hpp"
#include "predict.hpp"

namespace hpcai::group {
namespace {

/// Returns the labels of the test samples, -1 for each sample that an evaluation skips.
std::vector<std::int32_t> validation_labels(
    const std::shared_ptr<const data::SampleSet>& validation, const config::DataConfig& config,
    int threads, bool any_skipped) {
    const data::SampleSet& samples = *validation;
    std::vector<std::int32_t> labels;
    if (!any_skipped) {
        for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
            labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
        }
        return labels;
    }
    data::EvaluationSource source(validation, source_settings(config, threads));
    source.begin();
    for (std::int64_t batch = 0; batch < source.batches(); ++batch) {
        labels.push_back(source.next().labels.as<std::int32_t>().front());
    }
    return labels;
}

std::string text_of(const Quantity& quality) {
    return quality.value ? fmt::format("{}", *quality.value) : quality.reason;
}

}  // namespace

void load_predictions(const context::RunContext& context, const data::SampleSets& samples,
                      int threads, GroupOutcome& outcome) {
    const bool any_skipped = outcome.result.bad_samples > 0 &&
                             context.config.data.on_bad_sample == config::BadSamplePolicy::skip;
    outcome.predictions.validation.labels =
        validation_labels(samples.validation, context.config.data, threads, any_skipped);
    const auto evaluator = workloads::make_evaluator(context.config, samples);
    const auto directory = results::group_directory(context.output, outcome.result.record.group);
    evaluator->load(directory, outcome.predictions);
    GroupResult rescored;
    evaluator->score(outcome.predictions, rescored);
    require(rescored.quality.value == outcome.result.quality.value, ExitCode::data,
            "'{}': the stored {} is {}, but the current test samples give {}; the run began with "
            "other samples",
            (directory / "record.json").string(),
            metric_name(workloads::workload_of(context.config.workload).metric),
            text_of(outcome.result.quality), text_of(rescored.quality));
}

void predict_out_of_bag(const context::RunContext& context, const context::Resources& resources,
                        Model& model, comm::Communicator& group, GroupOutcome& outcome) {
    outcome.predictions.out_of_bag =
        make_sampler(context, resources.samples).out_of_bag(model.number());
    std::vector<std::uint32_t> numbers;
    for (std::uint32_t sample = 0; sample < outcome.predictions.out_of_bag.size(); ++sample) {
        if (outcome.predictions.out_of_bag[sample] != 0) numbers.push_back(sample);
    }
    if (numbers.empty()) return;
    outcome.predictions.out_of_bag_samples =
        predict(context, resources, {model.store(), model.edits()},
                data::make_subset(resources.samples.training, std::move(numbers)), group)
            .predictions;
}

std::optional<GroupOutcome> load_completed_group(const context::RunContext& context,
                                                 const context::Resources& resources,
                                                 TrainingState& state, comm::Communicator& group,
                                                 Logger& log) {
    GroupOutcome outcome;
    const int number = context.place.group;
    std::int64_t is_finished = 0;
    comm::collective_try(group, [&] {
        if (group.rank() != 0) return;
        std::string why;
        auto result = results::read_finished_group(context.output, context.config, number, &why);
        if (!result) return log.info("group {} has to be trained: {}", number, why);
        outcome.result = std::move(*result);
        load_predictions(context, resources.samples, resources.threads, outcome);
        is_finished = 1;
    });
    group.all_reduce_sum(std::span(&is_finished, 1));
    if (is_finished == 0) return std::nullopt;
    if (context.config.bagging.out_of_bag) {
        state.free_training_memory();
        comm::collective_try(group, [&] {
            state.model->load(results::group_directory(context.output, number) /
                              "weights.safetensors");
        });
        predict_out_of_bag(context, resources, *state.model, group, outcome);
    }
    if (group.rank() == 0) {
        // An earlier launch may have died before it removed its checkpoints.
        results::remove_group_checkpoints(context.output, number);
        log.info("group {} finished in an earlier launch; its stored predictions are used", number);
    }
    outcome.status = comm::GroupStatus::of(number, comm::GroupState::completed);
    outcome.end = ProgressState::finished;
    return outcome;
}

}  // namespace hpcai::group
