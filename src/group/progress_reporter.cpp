// SPDX-License-Identifier: Apache-2.0
#include "progress_reporter.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <hpcai/meters/utc.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/run_output.hpp>

namespace hpcai::group {
namespace {

constexpr double kFileIntervalSeconds = 2;  // between two writes in the same state
constexpr double kEvaluationSpeedup = 3;    // assumed: images/s of evaluation / those of training

void print_event(const context::RunContext& context, const Progress& progress) {
    using nlohmann::ordered_json;
    const auto known = [](double value) {
        return std::isfinite(value) && value >= 0 ? ordered_json(value) : ordered_json();
    };
    const auto& slowest = progress.slowest_group;
    std::cout << results::event_line(
                     "progress", context.output, context.launch.repetition_or_zero(),
                     {{"group", context.place.group},
                      {"groups_training", progress.groups_training},
                      {"trial", progress.trial ? ordered_json(*progress.trial) : ordered_json()},
                      {"epoch", progress.epoch},
                      {"epochs", progress.epochs},
                      {"step", progress.step},
                      {"steps", progress.steps},
                      {"loss", known(progress.loss)},
                      {"images_per_second", known(progress.images_per_second)},
                      {"seconds_left", known(progress.seconds_left)},
                      {"slowest_group", slowest ? ordered_json(*slowest) : ordered_json()}})
              << std::flush;
}

}  // namespace

ProgressReporter::ProgressReporter(const context::RunContext& context, std::int64_t test_samples)
    : context_(context),
      test_samples_(test_samples),
      reports_(context.place.group_rank == 0),
      groups_(context.controller.layout().groups) {
    record_.epochs = context.config.workload.epochs;
    record_.host = context.host();
    const Quantity unknown{std::nullopt, "not known yet"};
    record_.loss = record_.images_per_second = record_.seconds_left = unknown;
    const config::ProgressOutput output = context.config.run.progress;
    if (context.place.group != 0 || !reports_ || output == config::ProgressOutput::off) return;
    ProgressSettings settings;
    if (output == config::ProgressOutput::json)
        settings.print = [&context](const Progress& progress) { print_event(context, progress); };
    settings.live = !settings.print && isatty(STDERR_FILENO) == 1;
    const context::LaunchContext& launch = context.launch;
    if (launch.repetitions > 1)
        settings.prefix = fmt::format("run {} of {}  ", launch.repetition, launch.repetitions);
    if (context.controller.layout().groups > 1) settings.prefix += "group 0  ";
    line_.emplace(std::cerr, settings);
}

void ProgressReporter::begin() {
    watch_.restart();
    write();
}

void ProgressReporter::step(const training::StepReport& step) {
    if (!reports_) return;
    if (!first_step_) first_step_ = step.step;
    const double seconds = watch_.seconds();
    const double per_step = seconds / static_cast<double>(step.step - *first_step_ + 1);
    Progress progress;
    progress.trial = trial_;
    progress.step = step.step;
    progress.steps = step.steps;
    if (step.epochs > 0) record_.epochs = step.epochs;
    progress.epoch = step.epoch + 1;
    progress.epochs = record_.epochs;
    progress.loss = step.loss;
    progress.images_per_second = static_cast<double>(step.samples) / per_step;
    progress.seconds_left = per_step * static_cast<double>(step.steps - step.step);
    // After its last step, no other group waits for this one, however slow its old report makes it.
    const bool is_last = progress.step == progress.steps;
    groups_[context_.place.group] = {meters::UtcClock().seconds() + progress.seconds_left,
                                     is_last ? 0 : progress.images_per_second};
    record_.step = progress.step;
    record_.steps = progress.steps;
    record_.epoch = progress.epoch;
    // The loss is NaN until results are read from the device. Until then, speed is unknown, too.
    if (!std::isnan(step.loss)) {
        record_.loss = {step.loss, ""};
        record_.images_per_second = {progress.images_per_second, ""};
        record_.seconds_left = {progress.seconds_left, ""};
    }
    if (since_file_.seconds() >= kFileIntervalSeconds) write();
    if (!line_) return;
    estimate_run(progress);
    line_->update(progress, seconds);
}

void ProgressReporter::keep_alive() {
    if (since_file_.seconds() >= kFileIntervalSeconds) write();
}

void ProgressReporter::forget_steps_after(std::int64_t steps) {
    if (record_.step > steps)
        record_.epoch = static_cast<int>(steps * record_.epoch / record_.step);
    record_.step = steps;
}

/// Returns the training group with the fewest images/s if all other training groups of known speed
/// are at least 10 % faster; nothing if there is no other one.
std::optional<int> ProgressReporter::slowest_group() const {
    double lowest = std::numeric_limits<double>::infinity(), second = lowest;
    int slowest = 0;
    for (int group = 0; group < std::ssize(groups_); ++group) {
        const Estimate& one = groups_[group];
        if (one.has_ended || one.images_per_second <= 0) continue;
        second = std::min(second, std::max(lowest, one.images_per_second));
        if (one.images_per_second < lowest) slowest = group;
        lowest = std::min(lowest, one.images_per_second);
    }
    return std::isfinite(second) && second >= 1.1 * lowest ? std::optional(slowest) : std::nullopt;
}

/// Estimates the rest of the run: the training that ends last, the evaluation, and the remaining
/// repetitions, each with all steps.
void ProgressReporter::estimate_run(Progress& progress) const {
    progress.groups_training =
        static_cast<int>(std::ranges::count(groups_, false, &Estimate::has_ended));
    progress.slowest_group = slowest_group();
    const double training_left =
        std::ranges::max(groups_, {}, &Estimate::end_unix_seconds).end_unix_seconds -
        meters::UtcClock().seconds();
    const double left = training_left + static_cast<double>(test_samples_) /
                                            (kEvaluationSpeedup * progress.images_per_second);
    const context::LaunchContext& launch = context_.launch;
    const double steps_of_launch = static_cast<double>(progress.steps - *first_step_ + 1);
    const double repetition_seconds =
        (watch_.seconds() + left) * static_cast<double>(progress.steps) / steps_of_launch;
    progress.is_of_all_runs = launch.repetitions > 1;
    progress.seconds_left = left + (launch.repetitions - launch.repetition) * repetition_seconds;
}

/// Reads the progress of one other group, the next one in each call.
void ProgressReporter::read_peer() {
    peer_ = (peer_ + 1) % groups_.size();
    if (peer_ == 0) return;
    const auto found = results::read_progress(context_.output, static_cast<int>(peer_)).progress;
    // A progress without a time is from the record of an earlier launch.
    if (!found || found->written_unix_seconds == 0) return;
    Estimate& group = groups_[peer_] = {.has_ended = found->state != ProgressState::training};
    if (!found->seconds_left.value) return;
    group.end_unix_seconds =
        static_cast<double>(found->written_unix_seconds) + *found->seconds_left.value;
    group.images_per_second = found->images_per_second.value.value_or(0);
}

void ProgressReporter::end(const std::string& failure, ProgressState state, bool is_acting_leader) {
    if (line_) line_->finish();
    if (is_acting_leader) {
        reports_ = true;
        record_ = results::read_progress(context_.output, context_.place.group)
                      .progress.value_or(record_);
    }
    record_.reason = failure;
    record_.state = state;
    record_.seconds_left = {std::nullopt, "training has ended"};
    write();
}

void ProgressReporter::write() {
    if (!reports_) return;
    results::write_progress(context_.output, context_.place.group, record_);
    since_file_.restart();
    if (line_) read_peer();
}

}  // namespace hpcai::group
