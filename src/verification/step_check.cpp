// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/training/schedule.hpp>
#include <hpcai/verification/search.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

// The length of a step and the sum of its phases differ by rounding.
constexpr double kStepRounding = 1e-6;  // seconds
// A busy machine may read the end of an epoch this long after the epoch's last step.
constexpr double kPause = 5;  // seconds

double length_of(const std::vector<StepRecord>& steps, std::size_t index) {
    return steps[index].end_seconds - (index == 0 ? 0 : steps[index - 1].end_seconds);
}

double sum_of(const PhaseSeconds& phases) {
    double sum = 0;
    for (const metrics::NamedSpread& row : metrics::kPhaseSpreads)
        if (std::isfinite(phases.*row.phase)) sum += phases.*row.phase;
    return sum;
}

/// Returns whether the host's clock timed the step. A GPU's clock does not time all phases.
bool has_host_phases(const StepRecord& step) {
    return std::isfinite(step.phases.input_wait);
}

void check_phases(const std::vector<StepRecord>& steps, const std::string& file,
                  Inspector& inspector) {
    for (std::size_t index = 0; index < steps.size(); ++index) {
        const double sum = sum_of(steps[index].phases), length = length_of(steps, index);
        if (!has_host_phases(steps[index]) || sum <= length + kStepRounding) continue;
        inspector.report(
            file, "phases of step {} take {} s; must take {} s or less, according to end_seconds",
            index, sum, length);
        return;
    }
}

/// Checks the learning rates. pow() and cos() may round differently on another machine.
void check_rates(const config::Config& config, std::span<const StepRecord> steps,
                 std::int64_t steps_per_epoch, const std::string& file, Inspector& inspector) {
    constexpr double kTolerance = 1e-12;
    const training::Schedule schedule =
        training::make_schedule(config.training, config.workload.epochs, steps_per_epoch);
    for (std::size_t index = 0; index < steps.size(); ++index) {
        const StepRecord& step = steps[index];
        const double expected = schedule(static_cast<std::int64_t>(index));
        const double allowed = kTolerance * config.training.learning_rate *
                               config.training.batch_size / config.training.learning_rate_batch;
        if (std::abs(step.learning_rate - expected) <= allowed) continue;
        inspector.report(
            file, "learning_rate of step {} is {}; must be {}, according to training.schedule",
            step.step, step.learning_rate, expected);
        return;
    }
}

/// Returns the lengths of the steps. The first step of an epoch begins after a pause, so its length
/// is the sum of its phases.
std::vector<double> step_seconds(const std::vector<StepRecord>& steps) {
    std::vector<double> seconds;
    for (std::size_t index = 0; index < steps.size(); ++index) {
        const bool begins_epoch = index == 0 || steps[index - 1].epoch != steps[index].epoch;
        seconds.push_back(begins_epoch ? sum_of(steps[index].phases) : length_of(steps, index));
    }
    return seconds;
}

}  // namespace

std::vector<TrainedEpochs> trained_epochs(const config::Config& config,
                                          const search::History* history) {
    if (history == nullptr) return {{config, config.workload.epochs}};
    std::vector<TrainedEpochs> trained;
    for (const search::Trial& trial : history->trials()) {
        if (!trial.finished) continue;
        trained.push_back({trial_config(config, trial.proposed),
                           static_cast<int>(trial.finished->accuracy.size())});
    }
    return trained;
}

void check_steps(const std::vector<TrainedEpochs>& trained, const GroupRecord& record,
                 const std::vector<StepRecord>& steps, const GroupFiles& files,
                 Inspector& inspector) {
    if (trained.empty()) return;
    const std::int64_t batch = trained.front().config.training.batch_size;
    const std::int64_t steps_per_epoch = std::max<std::int64_t>(record.samples_drawn / batch, 1);
    for (const StepRecord& step : steps) {
        if (step.samples == batch) continue;
        inspector.report(files.steps,
                         "samples of step {} is {}; must be {}, according to training.batch_size",
                         step.step, step.samples, batch);
        break;
    }
    for (const StepRecord& step : steps) {
        const auto epoch = static_cast<int>(step.step / steps_per_epoch);
        if (step.epoch == epoch) continue;
        inspector.report(files.steps,
                         "epoch of step {} is {}; must be {}, according to samples_drawn",
                         step.step, step.epoch, epoch);
        break;
    }
    std::size_t first = 0;
    for (const TrainedEpochs& part : trained) {
        const auto count = static_cast<std::size_t>(part.epochs * steps_per_epoch);
        if (first + count > steps.size()) break;  // the caller reports the number of steps
        check_rates(part.config, std::span(steps).subspan(first, count), steps_per_epoch,
                    files.steps, inspector);
        first += count;
    }
    check_phases(steps, files.steps, inspector);
}

void check_epochs(std::size_t epochs, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, const GroupFiles& files,
                  Inspector& inspector) {
    if (record.epoch_seconds.size() != epochs) {
        inspector.report(files.record,
                         "record.epoch_seconds has {} epochs; must have {}, according to config",
                         record.epoch_seconds.size(), epochs);
        return;
    }
    double before = 0;  // end of the previous epoch
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        const auto in_epoch = [&](const StepRecord& step) {
            return static_cast<std::size_t>(step.epoch) == epoch;
        };
        const auto first = std::ranges::find_if(steps, in_epoch);
        if (first == steps.end()) return;
        const auto end = std::find_if_not(first, steps.end(), in_epoch);
        const double last = (end - 1)->end_seconds;
        const double minimum = last - first->end_seconds, maximum = last - before + kPause;
        const double seconds = record.epoch_seconds[epoch];
        if (!(seconds >= minimum - kStepRounding && seconds <= maximum)) {
            inspector.report(files.record,
                             "record.epoch_seconds[{}] is {}; must be {} to {}, according to {}",
                             epoch, seconds, minimum, maximum, files.steps);
            return;
        }
        before = last;
    }
}

void check_leader(const RankRecord& leader, const std::vector<StepRecord>& steps,
                  const GroupFiles& files, Inspector& inspector) {
    const RankRecord summary = metrics::summarize(steps, step_seconds(steps));
    const auto compare = [&](const std::string& name, double is, double expected, double allowed) {
        const bool is_near =
            std::isnan(is) ? std::isnan(expected) : std::abs(is - expected) <= allowed;
        if (is_near) return;
        inspector.report(files.ranks, "{} of rank 0 is {}; must be {}, according to {}", name, is,
                         expected, files.steps);
    };
    for (const metrics::NamedSpread& row : metrics::kPhaseSpreads) {
        compare(std::string(row.name) + "_seconds", leader.mean.*row.phase, summary.mean.*row.phase,
                0);
    }
    if (!std::ranges::all_of(steps, has_host_phases)) return;
    compare("median_step_seconds", leader.median_step_seconds, summary.median_step_seconds,
            kStepRounding);
    compare("p99_step_seconds", leader.p99_step_seconds, summary.p99_step_seconds, kStepRounding);
    compare("longest_step_seconds", leader.longest_step_seconds, summary.longest_step_seconds,
            kStepRounding);
}

}  // namespace hpcai::verification
