// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include <hpcai/training/schedule.hpp>

namespace hpcai::training {
namespace {

/// Returns a fraction from 0 at `first` to 1 at `last` and later.
double progress(std::int64_t step, std::int64_t first, std::int64_t last) {
    if (last <= first) return 1;
    return std::clamp(static_cast<double>(step - first) / static_cast<double>(last - first), 0.0,
                      1.0);
}

}  // namespace

Schedule make_schedule(const config::TrainingConfig& training, int epochs,
                       std::int64_t steps_per_epoch) {
    const auto scaled = [&training](double rate) {
        return rate * training.batch_size / training.learning_rate_batch;
    };
    const double peak = scaled(training.learning_rate);
    const double final_rate = scaled(training.final_learning_rate);
    const auto first = static_cast<std::int64_t>(
        std::llround(training.warmup_epochs * static_cast<double>(steps_per_epoch)));
    const std::int64_t last = epochs * steps_per_epoch;
    const auto after_warmup = [=](std::int64_t step) {
        switch (training.schedule) {
            case config::Schedule::constant:
                break;
            case config::Schedule::step: {
                const auto passed = std::ranges::count_if(training.schedule_epochs, [&](int epoch) {
                    return step >= epoch * steps_per_epoch;
                });
                return peak * std::pow(training.schedule_factor, static_cast<double>(passed));
            }
            case config::Schedule::cosine: {
                const double wave = std::cos(std::numbers::pi * progress(step, first, last));
                return final_rate + (peak - final_rate) * ((1 + wave) / 2);
            }
            case config::Schedule::polynomial: {
                const double rest = 1 - progress(step, first, last);
                return final_rate + (peak - final_rate) * std::pow(rest, training.schedule_power);
            }
        }
        return peak;
    };
    return [=, start = training.warmup_start](std::int64_t step) {
        if (step >= first) return after_warmup(step);
        const double share = static_cast<double>(step + 1) / static_cast<double>(first);
        return after_warmup(first) * (start + (1 - start) * share);
    };
}

}  // namespace hpcai::training
