// SPDX-License-Identifier: Apache-2.0
#include "progress_reporter.hpp"

#include <cmath>
#include <iostream>

#include <unistd.h>

#include <hpcai/results/group_files.hpp>

namespace hpcai::group {
namespace {

constexpr double kFileIntervalSeconds = 2;  // between two writes in the same state

}  // namespace

ProgressReporter::ProgressReporter(const context::RunContext& context)
    : context_(context), reports_(context.place.group_rank == 0) {
    record_.epochs = context.config.workload.epochs;
    record_.host = context.host();
    const Quantity unknown{std::nullopt, "not known yet"};
    record_.loss = record_.images_per_second = record_.seconds_left = unknown;
    if (context.place.group != 0 || !reports_) return;
    ProgressSettings settings;
    settings.live = isatty(STDERR_FILENO) == 1;
    if (context.controller.layout().groups > 1) settings.prefix = "group 0  ";
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
    progress.step = step.step;
    progress.steps = step.steps;
    progress.epoch = step.epoch + 1;
    progress.epochs = record_.epochs;
    progress.loss = step.loss;
    progress.images_per_second = static_cast<double>(step.samples) / per_step;
    progress.seconds_left = per_step * static_cast<double>(step.steps - step.step);
    if (line_) line_->update(progress, seconds);
    record_.step = progress.step;
    record_.steps = progress.steps;
    record_.epoch = progress.epoch;
    // The state of the device is unknown until results are read.
    if (!std::isnan(step.loss)) {
        record_.loss = {step.loss, ""};
        record_.images_per_second = {progress.images_per_second, ""};
        record_.seconds_left = {progress.seconds_left, ""};
    }
    if (since_file_.seconds() >= kFileIntervalSeconds) write();
}

void ProgressReporter::end(const std::string& failure, ProgressState state, bool is_acting_leader) {
    if (line_) line_->finish();
    if (is_acting_leader) replace_leader();
    record_.reason = failure;
    record_.state = state;
    record_.seconds_left = {std::nullopt, "training has ended"};
    write();
}

void ProgressReporter::replace_leader() {
    reports_ = true;
    if (auto last = results::read_progress(context_.output, context_.place.group).progress)
        record_ = *last;
}

void ProgressReporter::write() {
    if (!reports_) return;
    results::write_progress(context_.output, context_.place.group, record_);
    since_file_.restart();
}

}  // namespace hpcai::group
