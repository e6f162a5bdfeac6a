// SPDX-License-Identifier: Apache-2.0
#include "stored_group.hpp"

#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/data/subset.hpp>
#include <hpcai/verification/judge.hpp>

#include "checkpoint_folder.hpp"
#include "group_outcome.hpp"
#include "result_layout.hpp"
#include "result_reader.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

/// As an evaluation has them: those of samples that it leaves out are -1.
std::vector<std::int32_t> validation_labels(const Start& start, bool any_left_out) {
    const data::SampleSet& samples = *start.samples.validation;
    std::vector<std::int32_t> labels;
    if (!any_left_out) {
        for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
            labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
        }
        return labels;
    }
    data::SourceSettings settings;
    settings.decode_threads = decode_threads(start);
    settings.on_bad_sample = start.config.data.on_bad_sample;
    data::EvaluationSource source(start.samples.validation, settings);
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

void load_predictions(const Start& start, GroupOutcome& outcome) {
    const bool any_left_out = outcome.result.bad_samples > 0 &&
                              start.config.data.on_bad_sample == config::BadSamplePolicy::skip;
    outcome.validation.labels = validation_labels(start, any_left_out);
    const auto workload = make_workload(start);
    const auto directory = group_directory(start.output, outcome.result.record.group);
    workload->load(directory, outcome);
    GroupResult judged;
    workload->judge(outcome.validation, judged);
    require(judged.quality.value == outcome.result.quality.value, ExitCode::data,
            "'{}': says that its model's {} is {}, and by the test samples that are there now it "
            "is {}: they are not those of the training",
            (directory / "record.json").string(), verification::metric_of(start.config.workload),
            text_of(outcome.result.quality), text_of(judged.quality));
}

void predict_out_of_bag(const Start& start, BaseModel& model, comm::Communicator& group,
                        GroupOutcome& outcome) {
    outcome.out_of_bag = model.sampler().out_of_bag(model.number());
    std::vector<std::uint32_t> chosen;
    for (std::uint32_t sample = 0; sample < outcome.out_of_bag.size(); ++sample) {
        if (outcome.out_of_bag[sample] != 0) chosen.push_back(sample);
    }
    if (chosen.empty()) return;
    outcome.out_of_bag_samples =
        model.predict(data::make_subset(start.samples.training, std::move(chosen)), group)
            .predictions;
}

std::optional<GroupOutcome> take_finished_group(const Start& start, BaseModel& model,
                                                comm::Communicator& group, Logger& log) {
    GroupOutcome outcome;
    const int number = start.place.group;
    std::int64_t is_finished = 0;
    comm::run_together(group, [&] {
        if (group.rank() != 0) return;
        std::string why;
        auto result = read_finished_group(start.output, start.config.workload, number, &why);
        if (!result) return log.info("group {} is to be trained: {}", number, why);
        outcome.result = std::move(*result);
        load_predictions(start, outcome);
        is_finished = 1;
    });
    group.all_reduce_sum(std::span(&is_finished, 1));
    if (is_finished == 0) return std::nullopt;
    if (start.config.bagging.out_of_bag) {
        comm::run_together(group, [&] {
            model.load(group_directory(start.output, number) / "weights.safetensors");
        });
        predict_out_of_bag(start, model, group, outcome);
    }
    if (group.rank() == 0) {
        remove_group_checkpoints(start.output, number);  // it may have died before it could
        log.info("group {} has finished before: votes with its files", number);
    }
    outcome.status = comm::GroupStatus::of(number, comm::GroupState::completed);
    return outcome;
}

}  // namespace hpcai::benchmark
