// SPDX-License-Identifier: Apache-2.0
#include "step_check.hpp"

#include <algorithm>
#include <cmath>

#include <hpcai/metrics/step_statistics.hpp>
#include <hpcai/training/schedule.hpp>

namespace hpcai::verification {
namespace {

// Seconds. Two readings of a clock are the parts of a sum in another order.
constexpr double kStepRounding = 1e-6;
// How late the end of an epoch may be read, behind its last step, on a machine that is busy.
constexpr double kPause = 5;

double length_of(const std::vector<StepRecord>& steps, std::size_t index) {
    return steps[index].end_seconds - (index == 0 ? 0 : steps[index - 1].end_seconds);
}

/// Of those that are known.
double sum_of(const PhaseSeconds& phases) {
    double sum = 0;
    for (const metrics::NamedSpread& row : metrics::kPhaseSpreads) {
        if (std::isfinite(phases.*row.phase)) sum += phases.*row.phase;
    }
    return sum;
}

/// Only the host's clock divides a step into all of them; a GPU's runs beside it.
bool has_host_phases(const StepRecord& step) {
    return std::isfinite(step.phases.input_wait);
}

void check_phases(const std::vector<StepRecord>& steps, const std::string& file,
                  Inspector& inspector) {
    for (std::size_t index = 0; index < steps.size(); ++index) {
        const double sum = sum_of(steps[index].phases), length = length_of(steps, index);
        if (!has_host_phases(steps[index]) || sum <= length + kStepRounding) continue;
        inspector.find(file, "phases of step {} take {} s; must take {} s or less, by end_seconds",
                       index, sum, length);
        return;
    }
}

/// The machine's pow() and cos() may round another way than those that wrote the steps.
void check_rates(const config::Config& config, const std::vector<StepRecord>& steps,
                 std::int64_t steps_per_epoch, const std::string& file, Inspector& inspector) {
    constexpr double kRoundings = 1e-12;
    const training::Schedule schedule =
        training::make_schedule(config.training, config.workload.epochs, steps_per_epoch);
    for (const StepRecord& step : steps) {
        const double must = schedule(step.step);
        const double allowed = kRoundings * config.training.learning_rate *
                               config.training.batch_size / config.training.learning_rate_batch;
        if (std::abs(step.learning_rate - must) <= allowed) continue;
        inspector.find(file, "learning_rate of step {} is {}; must be {}, by training.schedule",
                       step.step, step.learning_rate, must);
        return;
    }
}

/// Behind the pause between epochs a step begins later than the one before it ends, which its
/// phases tell.
std::vector<double> step_seconds(const std::vector<StepRecord>& steps) {
    std::vector<double> seconds;
    for (std::size_t index = 0; index < steps.size(); ++index) {
        const bool begins_epoch = index == 0 || steps[index - 1].epoch != steps[index].epoch;
        seconds.push_back(begins_epoch ? sum_of(steps[index].phases) : length_of(steps, index));
    }
    return seconds;
}

bool is_near(double one, double other, double allowed) {
    return std::isnan(one) ? std::isnan(other) : std::abs(one - other) <= allowed;
}

struct LengthColumn {
    const char* name;
    double RankRecord::*seconds;
};
constexpr LengthColumn kLengths[] = {
    {"median_step_seconds", &RankRecord::median_step_seconds},
    {"p99_step_seconds", &RankRecord::p99_step_seconds},
    {"longest_step_seconds", &RankRecord::longest_step_seconds},
};

}  // namespace

void check_steps(const Claim& claim, const GroupRecord& record,
                 const std::vector<StepRecord>& steps, const GroupFiles& files,
                 Inspector& inspector) {
    const std::int64_t batch = claim.config.training.batch_size;
    const std::int64_t steps_per_epoch = std::max<std::int64_t>(record.samples_drawn / batch, 1);
    for (const StepRecord& step : steps) {
        if (step.samples == batch) continue;
        inspector.find(files.steps, "samples of step {} is {}; must be {}, by training.batch_size",
                       step.step, step.samples, batch);
        break;
    }
    for (const StepRecord& step : steps) {
        const auto epoch = static_cast<int>(step.step / steps_per_epoch);
        if (step.epoch == epoch) continue;
        inspector.find(files.steps, "epoch of step {} is {}; must be {}, by samples_drawn",
                       step.step, step.epoch, epoch);
        break;
    }
    check_rates(claim.config, steps, steps_per_epoch, files.steps, inspector);
    check_phases(steps, files.steps, inspector);
}

void check_epochs(const config::Config& config, const GroupRecord& record,
                  const std::vector<StepRecord>& steps, const GroupFiles& files,
                  Inspector& inspector) {
    const auto epochs = static_cast<std::size_t>(config.workload.epochs);
    if (record.epoch_seconds.size() != epochs) {
        inspector.find(files.record, "record.epoch_seconds has {} epochs; must have {}, by config",
                       record.epoch_seconds.size(), epochs);
        return;
    }
    double before = 0;  // the end of the epoch before
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
        const auto in_epoch = [&](const StepRecord& step) {
            return static_cast<std::size_t>(step.epoch) == epoch;
        };
        const auto first = std::ranges::find_if(steps, in_epoch);
        if (first == steps.end()) return;
        const auto end = std::find_if_not(first, steps.end(), in_epoch);
        const double last = (end - 1)->end_seconds;
        const double least = last - first->end_seconds, most = last - before + kPause;
        const double seconds = record.epoch_seconds[epoch];
        if (!(seconds >= least - kStepRounding && seconds <= most)) {
            inspector.find(files.record, "record.epoch_seconds[{}] is {}; must be {} to {}, by {}",
                           epoch, seconds, least, most, files.steps);
            return;
        }
        before = last;
    }
}

void check_leader(const RankRecord& leader, const std::vector<StepRecord>& steps,
                  const GroupFiles& files, Inspector& inspector) {
    const RankRecord expected = metrics::summarize(steps, step_seconds(steps));
    const auto compare = [&](const std::string& column, double is, double must, double allowed) {
        if (is_near(is, must, allowed)) return;
        inspector.find(files.ranks, "{} of rank 0 is {}; must be {}, by {}", column, is, must,
                       files.steps);
    };
    for (const metrics::NamedSpread& row : metrics::kPhaseSpreads) {
        compare(std::string(row.name) + "_seconds", leader.mean.*row.phase,
                expected.mean.*row.phase, 0);
    }
    if (!std::ranges::all_of(steps, has_host_phases)) return;
    for (const LengthColumn& column : kLengths) {
        compare(column.name, leader.*column.seconds, expected.*column.seconds, kStepRounding);
    }
}

}  // namespace hpcai::verification
