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

Schedule constant(double rate) {
    return [rate](std::int64_t) { return rate; };
}

Schedule step_decay(double rate, double factor, std::vector<std::int64_t> steps) {
    return [rate, factor, steps = std::move(steps)](std::int64_t step) {
        const auto passed =
            std::count_if(steps.begin(), steps.end(), [&](std::int64_t at) { return step >= at; });
        return rate * std::pow(factor, static_cast<double>(passed));
    };
}

Schedule cosine_decay(double rate, double final_rate, std::int64_t first, std::int64_t last) {
    return [=](std::int64_t step) {
        const double share = (1 + std::cos(std::numbers::pi * progress(step, first, last))) / 2;
        return final_rate + (rate - final_rate) * share;
    };
}

Schedule polynomial_decay(double rate, double final_rate, double power, std::int64_t first,
                          std::int64_t last) {
    return [=](std::int64_t step) {
        return final_rate + (rate - final_rate) * std::pow(1 - progress(step, first, last), power);
    };
}

Schedule warmup(Schedule schedule, double start, std::int64_t steps) {
    return [schedule = std::move(schedule), start, steps](std::int64_t step) {
        if (step >= steps) return schedule(step);
        const double share = static_cast<double>(step + 1) / static_cast<double>(steps);
        return schedule(steps) * (start + (1 - start) * share);
    };
}

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
    const auto decayed = [&]() -> Schedule {
        switch (training.schedule) {
            case config::Schedule::constant:
                break;
            case config::Schedule::step: {
                std::vector<std::int64_t> steps;
                for (const int epoch : training.schedule_epochs) {
                    steps.push_back(epoch * steps_per_epoch);
                }
                return step_decay(peak, training.schedule_factor, std::move(steps));
            }
            case config::Schedule::cosine:
                return cosine_decay(peak, final_rate, first, last);
            case config::Schedule::polynomial:
                return polynomial_decay(peak, final_rate, training.schedule_power, first, last);
        }
        return constant(peak);
    };
    return warmup(decayed(), training.warmup_start, first);
}

}  // namespace hpcai::training
