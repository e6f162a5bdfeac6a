// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/training/schedule.hpp>

/// All expected rates were worked out by hand from the formulas in schedule.hpp.
namespace hpcai::training {
namespace {

void expect_rates(const Schedule& schedule, const std::vector<double>& expected) {
    for (std::size_t step = 0; step < expected.size(); ++step) {
        EXPECT_NEAR(schedule(static_cast<std::int64_t>(step)), expected[step], 1e-12)
            << "step " << step;
    }
}

TEST(Schedule, ConstantStays) {
    expect_rates(constant(0.3), {0.3, 0.3, 0.3});
}

TEST(Schedule, StepDecayMultipliesFromEachStepOn) {
    expect_rates(step_decay(2, 0.1, {2, 3, 5}), {2, 2, 0.2, 0.02, 0.02, 0.002, 0.002});
}

TEST(Schedule, CosineGoesDownHalfAWave) {
    // (1 + cos(pi k / 6)) / 2 for k = 0, 2, 3, 4, 6: 1, 3/4, 1/2, 1/4, 0
    const Schedule schedule = cosine_decay(5, 1, 10, 16);
    EXPECT_NEAR(schedule(10), 5, 1e-12);
    EXPECT_NEAR(schedule(12), 4, 1e-12);
    EXPECT_NEAR(schedule(13), 3, 1e-12);
    EXPECT_NEAR(schedule(14), 2, 1e-12);
    EXPECT_NEAR(schedule(16), 1, 1e-12);
    EXPECT_NEAR(schedule(17), 1, 1e-12) << "it does not rise again";
    EXPECT_NEAR(schedule(3), 5, 1e-12) << "nor starts early";
}

TEST(Schedule, PolynomialFollowsThePowerOfWhatIsLeft) {
    expect_rates(polynomial_decay(16, 0, 2, 0, 4), {16, 9, 4, 1, 0, 0});
    expect_rates(polynomial_decay(9, 1, 1, 1, 5), {9, 9, 7, 5, 3, 1, 1});
}

TEST(Schedule, WarmupRisesInAStraightLineToTheRateBehindIt) {
    expect_rates(warmup(constant(4), 0, 4), {1, 2, 3, 4, 4, 4});
    expect_rates(warmup(constant(4), 0.5, 4), {2.5, 3, 3.5, 4, 4});
    expect_rates(warmup(constant(4), 0, 0), {4, 4});
    expect_rates(warmup(polynomial_decay(4, 0, 1, 2, 6), 0, 2), {2, 4, 4, 3, 2, 1, 0});
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

TEST(MakeSchedule, StandsAnEpochWithoutSteps) {
    for (const auto kind : {config::Schedule::constant, config::Schedule::step,
                            config::Schedule::cosine, config::Schedule::polynomial}) {
        config::TrainingConfig config = training();
        config.schedule = kind;
        EXPECT_GE(make_schedule(config, 2, 0)(0), 0) << static_cast<int>(kind);
    }
}

}  // namespace
}  // namespace hpcai::training
