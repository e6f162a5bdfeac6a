// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/training/schedule.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

/// Unless noted otherwise, expected rates were computed by hand from the formulas in schedule.hpp.
namespace hpcai::training {
namespace {

void expect_rates(const Schedule& schedule, const std::vector<double>& expected) {
    for (std::size_t step = 0; step < expected.size(); ++step) {
        EXPECT_NEAR(schedule(static_cast<std::int64_t>(step)), expected[step], 1e-12)
            << "step " << step;
    }
}

/// Returns the settings of a schedule without warm-up and scaling from `rate`.
config::TrainingConfig settings(config::Schedule kind, double rate) {
    config::TrainingConfig config;
    config.learning_rate_batch = config.batch_size;
    config.schedule = kind;
    config.learning_rate = rate;
    config.warmup_epochs = 0;
    return config;
}

TEST(Schedule, ConstantStays) {
    expect_rates(make_schedule(settings(config::Schedule::constant, 0.3), 3, 1), {0.3, 0.3, 0.3});
}

TEST(Schedule, StepDecayMultipliesFromEachStepOn) {
    config::TrainingConfig config = settings(config::Schedule::step, 2);
    config.schedule_epochs = {2, 3, 5};
    config.schedule_factor = 0.1;
    expect_rates(make_schedule(config, 7, 1), {2, 2, 0.2, 0.02, 0.02, 0.002, 0.002});
}

TEST(Schedule, CosineGoesDownHalfAWave) {
    // (1 + cos(pi k / 6)) / 2 for k = 0, 2, 3, 4, 6: 1, 3/4, 1/2, 1/4, 0
    config::TrainingConfig config = settings(config::Schedule::cosine, 5);
    config.final_learning_rate = 1;
    config.warmup_epochs = 10;
    const Schedule schedule = make_schedule(config, 16, 1);
    EXPECT_NEAR(schedule(10), 5, 1e-12);
    EXPECT_NEAR(schedule(12), 4, 1e-12);
    EXPECT_NEAR(schedule(13), 3, 1e-12);
    EXPECT_NEAR(schedule(14), 2, 1e-12);
    EXPECT_NEAR(schedule(16), 1, 1e-12);
    EXPECT_NEAR(schedule(17), 1, 1e-12) << "it does not rise again";
}

TEST(Schedule, PolynomialFollowsThePowerOfWhatIsLeft) {
    config::TrainingConfig config = settings(config::Schedule::polynomial, 16);
    config.schedule_power = 2;
    expect_rates(make_schedule(config, 4, 1), {16, 9, 4, 1, 0, 0});
    config = settings(config::Schedule::polynomial, 9);
    config.final_learning_rate = 1;
    config.schedule_power = 1;
    config.warmup_epochs = 1;
    expect_rates(make_schedule(config, 5, 1), {9, 9, 7, 5, 3, 1, 1});
}

TEST(Schedule, WarmupRisesInAStraightLineToTheRateAfterIt) {
    config::TrainingConfig config = settings(config::Schedule::constant, 4);
    expect_rates(make_schedule(config, 6, 1), {4, 4});
    config.warmup_epochs = 4;
    expect_rates(make_schedule(config, 6, 1), {1, 2, 3, 4, 4, 4});
    config.warmup_start = 0.5;
    expect_rates(make_schedule(config, 6, 1), {2.5, 3, 3.5, 4, 4});
    config = settings(config::Schedule::polynomial, 4);
    config.schedule_power = 1;
    config.warmup_epochs = 2;
    expect_rates(make_schedule(config, 6, 1), {2, 4, 4, 3, 2, 1, 0});
}

config::TrainingConfig training() {
    config::TrainingConfig training;
    training.batch_size = 512;
    training.learning_rate = 0.1;
    training.learning_rate_batch = 256;
    training.warmup_epochs = 0;
    return training;
}

TEST(MakeSchedule, ScalesTheRateWithTheBatch) {
    config::TrainingConfig config = training();
    config.schedule = config::Schedule::constant;
    expect_rates(make_schedule(config, 1, 2), {0.2, 0.2});
    config.learning_rate_batch = 512;
    expect_rates(make_schedule(config, 1, 2), {0.1, 0.1});
}

TEST(MakeSchedule, CountsStepsOfScheduleStepInEpochs) {
    config::TrainingConfig config = training();
    config.schedule = config::Schedule::step;
    config.schedule_epochs = {1, 2};
    config.schedule_factor = 0.5;
    expect_rates(make_schedule(config, 3, 3), {0.2, 0.2, 0.2, 0.1, 0.1, 0.1, 0.05, 0.05, 0.05});
}

TEST(MakeSchedule, DecaysFromTheEndOfTheWarmupToTheEndOfTheRun) {
    config::TrainingConfig config = training();
    config.warmup_epochs = 0.5;  // two of the four steps of an epoch
    config.schedule = config::Schedule::polynomial;
    config.schedule_power = 1;
    expect_rates(make_schedule(config, 2, 4),
                 {0.1, 0.2, 0.2, 0.2 * 5 / 6, 0.2 * 4 / 6, 0.2 * 3 / 6, 0.2 * 2 / 6, 0.2 / 6, 0});
    config.schedule = config::Schedule::cosine;
    const Schedule cosine = make_schedule(config, 2, 4);
    EXPECT_NEAR(cosine(2), 0.2, 1e-12);
    EXPECT_NEAR(cosine(4), 0.15, 1e-12);
    EXPECT_NEAR(cosine(5), 0.1, 1e-12);
    EXPECT_NEAR(cosine(8), 0, 1e-12);
}

TEST(MakeSchedule, ScalesTheFinalRateWithTheBatchToo) {
    config::TrainingConfig config = training();
    config.final_learning_rate = 0.01;
    for (const auto kind : {config::Schedule::cosine, config::Schedule::polynomial}) {
        config.schedule = kind;
        const Schedule schedule = make_schedule(config, 1, 8);
        EXPECT_NEAR(schedule(0), 0.2, 1e-12);
        EXPECT_NEAR(schedule(8), 0.02, 1e-12);
    }
}

/// Returns the settings of one case of tests/data/reference/schedule.json.
config::TrainingConfig settings_of(const nlohmann::json& wanted, const nlohmann::json& reference) {
    static const std::map<std::string, config::Schedule> kKinds{
        {"constant", config::Schedule::constant},
        {"step", config::Schedule::step},
        {"cosine", config::Schedule::cosine},
        {"polynomial", config::Schedule::polynomial}};
    config::TrainingConfig config;
    config.batch_size = reference["batch_size"];
    config.learning_rate_batch = reference["learning_rate_batch"];
    config.schedule = kKinds.at(wanted["schedule"]);
    config.learning_rate = wanted["learning_rate"];
    config.final_learning_rate = wanted["final_learning_rate"];
    config.warmup_epochs = wanted["warmup_epochs"];
    config.warmup_start = wanted["warmup_start"];
    config.schedule_epochs = wanted["schedule_epochs"].get<std::vector<int>>();
    config.schedule_factor = wanted["schedule_factor"];
    config.schedule_power = wanted["schedule_power"];
    return config;
}

/// Adds |rate - reference| / peak rate of every step of every case.
void compare_rates(const std::string& list, tests::LargestError& error) {
    const nlohmann::json reference = tests::read_reference_json("schedule.json");
    for (const nlohmann::json& wanted : reference["cases"]) {
        const config::TrainingConfig config = settings_of(wanted, reference);
        const Schedule schedule =
            make_schedule(config, wanted["epochs"], wanted["steps_per_epoch"]);
        const std::vector<double> rates = wanted[list];
        ASSERT_EQ(rates.size(), 30U);
        const double peak = *std::ranges::max_element(rates);
        for (std::size_t step = 0; step < rates.size(); ++step) {
            error.add(std::abs(schedule(static_cast<std::int64_t>(step)) - rates[step]) / peak,
                      fmt::format("{}, warm-up {}, step {}", wanted["schedule"].get<std::string>(),
                                  config.warmup_epochs, step));
        }
    }
}

TEST(MakeSchedule, AgreesWithTorchLrSchedulerAtEveryStep) {
    // double: PyTorch computes some rates from the previous step, each with a rounding error of
    // 1.1e-16
    tests::LargestError error("learning rate against torch.optim.lr_scheduler, fp64", 1e-15);
    compare_rates("torch_rates", error);
}

TEST(MakeSchedule, AgreesWithItsClosedFormInDecimalsAtEveryStep) {
    // double: a few rounding errors of 1.1e-16
    tests::LargestError error("learning rate against its formula in 60 digits, fp64", 1e-15);
    compare_rates("closed_form_rates", error);
}

TEST(MakeSchedule, AcceptsAnEpochWithoutSteps) {
    for (const auto kind : {config::Schedule::constant, config::Schedule::step,
                            config::Schedule::cosine, config::Schedule::polynomial}) {
        config::TrainingConfig config = training();
        config.schedule = kind;
        EXPECT_GE(make_schedule(config, 2, 0)(0), 0) << static_cast<int>(kind);
    }
}

}  // namespace
}  // namespace hpcai::training
