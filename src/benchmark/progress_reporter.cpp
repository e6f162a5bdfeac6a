// SPDX-License-Identifier: Apache-2.0
#include "progress_reporter.hpp"

#include <iostream>

#include <unistd.h>

namespace hpcai::benchmark {

ProgressReporter::ProgressReporter(const Start& start) : epochs_(start.config.workload.epochs) {
    if (start.place.group != 0 || start.place.group_rank != 0) return;
    ProgressSettings settings;
    settings.live = isatty(STDERR_FILENO) == 1;
    line_.emplace(std::cerr, settings);
}

void ProgressReporter::step(const training::StepReport& step) {
    if (!line_) return;
    const double seconds = watch_.seconds();
    if (steps_before_ < 0) steps_before_ = step.step - 1;
    const double per_step = seconds / static_cast<double>(step.step - steps_before_);
    Progress progress;
    progress.step = step.step;
    progress.steps = step.steps;
    progress.epoch = step.epoch + 1;
    progress.epochs = epochs_;
    progress.loss = step.loss;
    progress.images_per_second = static_cast<double>(step.samples) / per_step;
    progress.seconds_left = per_step * static_cast<double>(step.steps - step.step);
    line_->update(progress, seconds);
}

void ProgressReporter::finish() {
    if (line_) line_->finish();
}

}  // namespace hpcai::benchmark
