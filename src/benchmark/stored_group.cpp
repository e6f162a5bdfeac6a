// SPDX-License-Identifier: Apache-2.0
#include "stored_group.hpp"

#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/agreement.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/data/subset.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/judge.hpp>

#include "group_checkpoints.hpp"
#include "workload.hpp"

namespace hpcai::benchmark {
namespace {

constexpr std::size_t kRecordLimitBytes = std::size_t{16} << 20;

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

/// Why a group without a record has none, where one of an earlier attempt has moved away.
std::string why_no_record(const std::filesystem::path& output, int group) {
    std::string text = "it has stored no record";
    std::error_code error;
    std::string newest;
    for (int number = 1;; ++number) {
        const auto attempt = output / "attempts" / std::to_string(number);
        if (!std::filesystem::exists(attempt, error)) break;
        const auto folder = group_directory(attempt, group);
        if (std::filesystem::exists(folder / "record.json", error)) newest = folder.string();
    }
    return newest.empty() ? text : fmt::format("{} since that in '{}'", text, newest);
}

/// By its own word; nothing where it cannot be read.
std::optional<bool> has_failed(const std::filesystem::path& record) {
    try {
        return !read_record(record).record.failure.empty();
    } catch (const Error&) {
        return std::nullopt;
    }
}

std::string text_of(const Quantity& quality) {
    return quality.value ? fmt::format("{}", *quality.value) : quality.reason;
}

}  // namespace

GroupResult read_record(const std::filesystem::path& path) {
    const std::vector<std::byte> bytes = storage::read_file_bytes(path, kRecordLimitBytes);
    return report::group_from_json(storage::text_of(bytes), path.string());
}

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

std::optional<GroupResult> read_finished_group(const std::filesystem::path& output,
                                               const config::WorkloadConfig& workload, int group,
                                               std::string* why) {
    const auto refuse = [&](const std::string& reason) -> std::optional<GroupResult> {
        if (why != nullptr) *why = reason;
        return std::nullopt;
    };
    const auto directory = group_directory(output, group);
    std::error_code error;
    if (!std::filesystem::exists(directory / "record.json", error)) {
        return refuse(why_no_record(output, group));
    }
    try {
        GroupResult result = read_record(directory / "record.json");
        if (!result.record.failure.empty()) return refuse(result.record.failure);
        for (const char* name : {"weights.safetensors", "steps.csv", "ranks.csv"}) {
            if (!std::filesystem::is_regular_file(directory / name, error)) {
                return refuse(fmt::format("it has no '{}'", (directory / name).string()));
            }
        }
        const auto predictions = directory / verification::prediction_files(workload).member;
        if (result.record.group != group ||
            storage::sha256_hex_of_file(predictions) != result.record.predictions_sha256) {
            return refuse(
                fmt::format("'{}' is not what the group's record.json says", predictions.string()));
        }
        return result;
    } catch (const Error& damaged) {
        return refuse(damaged.what());
    }
}

void require_undamaged_groups(const std::filesystem::path& output,
                              const config::WorkloadConfig& workload, int groups, int ranks) {
    for (int group = 0; group < groups; ++group) {
        const auto directory = group_directory(output, group);
        std::error_code error;
        if (!std::filesystem::exists(directory / "record.json", error)) continue;
        // One that has finished has no checkpoints left.
        const std::optional<bool> failed = has_failed(directory / "record.json");
        if (failed.value_or(last_checkpoint(output, group, ranks) > 0)) continue;
        std::string why;
        require(read_finished_group(output, workload, group, &why).has_value(), ExitCode::data,
                "{}: group {} {}{}; where that cannot be had back, remove '{}' to train the group "
                "from the beginning",
                output.string(), group, failed ? "had finished, and " : "may have finished: ", why,
                directory.string());
    }
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
