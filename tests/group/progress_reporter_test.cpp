// SPDX-License-Identifier: Apache-2.0
#include "group/progress_reporter.hpp"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/records/json.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/storage/file.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::group {
namespace {

// images/s, far from those of the first group
const Quantity kSlow{1e-6, ""}, kFast{1e15, ""};

class Reporter : public testing::Test {
protected:
    Reporter() {
        for (const char* group : {"groups/0", "groups/1"})
            std::filesystem::create_directories(folder_ / group);
        context_.output = folder_.path();
        context_.place = context_.controller.place(0);
        context_.hosts = {"node0", "node1"};
    }

    void write_peer(ProgressState state, const Quantity& seconds_left,
                    const Quantity& images_per_second = {}, int group = 1) {
        ProgressRecord peer;
        peer.state = state;
        peer.seconds_left = seconds_left;
        peer.images_per_second = images_per_second;
        results::write_progress(context_.output, group, peer);
    }

    /// Returns what the first group prints after `step`, its first one, of ten steps.
    std::string print_first_step(std::int64_t step = 1) {
        testing::internal::CaptureStderr();
        testing::internal::CaptureStdout();
        ProgressReporter reporter(context_, 0);
        for (int peer = 1; peer < context_.controller.layout().groups; ++peer)
            reporter.begin();  // each call reads the progress of one peer
        reporter.step({.step = step, .steps = 10, .loss = 0.5, .samples = 8, .is_read = true});
        const std::string out = testing::internal::GetCapturedStdout();
        const std::string error = testing::internal::GetCapturedStderr();
        const bool is_json = context_.config.run.progress == config::ProgressOutput::json;
        EXPECT_EQ(is_json ? error : out, "");
        return is_json ? out : error;
    }
    nlohmann::json json_of_first_step(std::int64_t step = 1) {
        context_.config.run.progress = config::ProgressOutput::json;
        return nlohmann::json::parse(print_first_step(step));
    }

    storage::TemporaryFolder folder_;
    context::RunContext context_{
        .controller = plan::ParallelismController({.ranks = 2, .groups = 2, .degree = 1},
                                                  plan::fill_nodes(2, 2))};
};

TEST_F(Reporter, PrintsWhatTheConfigurationAsksFor) {
    EXPECT_EQ(print_first_step().find("group 0  epoch 1/"), 0U);
    context_.config.run.progress = config::ProgressOutput::off;
    EXPECT_EQ(print_first_step(), "");
    const nlohmann::json line = json_of_first_step();
    EXPECT_EQ(line["step"], 1);
    EXPECT_EQ(line["group"], 0);
    EXPECT_THAT(line["time_utc"].get<std::string>(),
                testing::MatchesRegex("[0-9]+-[0-9][0-9]-[0-9][0-9]T[0-9:]+Z"));
}

TEST_F(Reporter, ForgetsTheStepsOfAnUnfinishedTrial) {
    context_.config.run.progress = config::ProgressOutput::off;
    ProgressReporter reporter(context_, 0);
    reporter.step({.step = 22, .steps = 40, .epoch = 5, .samples = 8});
    reporter.forget_steps_after(20);
    reporter.end("stopped", ProgressState::stopped, false);
    const auto stored = results::read_progress(context_.output, 0).progress;
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->step, 20);
    EXPECT_EQ(stored->epoch, 5) << "each epoch has four steps";
}

TEST_F(Reporter, WaitsForTheGroupThatEndsLastAndNamesItOnlyIfItIsSlow) {
    write_peer(ProgressState::training, {5000.0, ""}, kFast);
    nlohmann::json line = json_of_first_step();
    EXPECT_EQ(line["slowest_group"], 0) << "it has fewer images/s and ends earlier";
    EXPECT_EQ(line["groups_training"], 2);
    EXPECT_NEAR(line["seconds_left"].get<double>(), 5000, 10);
    write_peer(ProgressState::training, {5000.0, ""}, kSlow);
    EXPECT_EQ(json_of_first_step()["slowest_group"], 1);
    write_peer(ProgressState::training, {5000.0, ""});
    EXPECT_TRUE(json_of_first_step()["slowest_group"].is_null()) << "only one speed is known";
}

TEST_F(Reporter, DoesNotCallItsGroupTheSlowestAfterItsLastStep) {
    write_peer(ProgressState::training, {5000.0, ""}, kFast);
    EXPECT_EQ(json_of_first_step(9)["slowest_group"], 0);
    EXPECT_TRUE(json_of_first_step(10)["slowest_group"].is_null()) << "the other one still trains";
}

TEST_F(Reporter, NamesNoSlowestGroupIfTwoHaveAboutTheSameSpeed) {
    context_.controller =
        plan::ParallelismController({.ranks = 3, .groups = 3, .degree = 1}, plan::fill_nodes(3, 3));
    std::filesystem::create_directories(folder_ / "groups/2");
    write_peer(ProgressState::training, {5000.0, ""}, {1.00e-6, ""});
    write_peer(ProgressState::training, {9000.0, ""}, {1.05e-6, ""}, 2);
    nlohmann::json line = json_of_first_step();
    EXPECT_EQ(line["groups_training"], 3);
    EXPECT_TRUE(line["slowest_group"].is_null());
    write_peer(ProgressState::training, {9000.0, ""}, {1.15e-6, ""}, 2);
    EXPECT_EQ(json_of_first_step()["slowest_group"], 1);
}

TEST_F(Reporter, IgnoresAGroupThatHasEnded) {
    write_peer(ProgressState::evaluating, {std::nullopt, "training has ended"}, kSlow);
    const nlohmann::json line = json_of_first_step();
    EXPECT_TRUE(line["slowest_group"].is_null());
    EXPECT_EQ(line["groups_training"], 1);
    EXPECT_LT(line["seconds_left"].get<double>(), 10);
}

TEST_F(Reporter, CountsAGroupThatHasNotEndedBeforeItsSpeedIsKnown) {
    EXPECT_EQ(json_of_first_step()["groups_training"], 2) << "without a progress file";
    write_peer(ProgressState::training, {std::nullopt, "not known yet"});
    EXPECT_EQ(json_of_first_step()["groups_training"], 2);
    std::filesystem::remove(folder_ / "groups/1/progress.json");
    GroupResult earlier;
    earlier.record.group = 1;
    earlier.record.failure = "stopped by a signal";
    storage::write_file_durably(folder_ / "groups/1/record.json", records::to_json(earlier));
    EXPECT_EQ(json_of_first_step()["groups_training"], 2) << "an earlier launch stopped it";
}

TEST_F(Reporter, IncludesTheRemainingRepetitions) {
    write_peer(ProgressState::training, {5000.0, ""}, kSlow);
    context_.launch.repetitions = 3;
    EXPECT_NEAR(json_of_first_step()["seconds_left"].get<double>(), 15000, 30);
    // A resume at the sixth of ten steps leaves half of this run; the other two are whole.
    EXPECT_NEAR(json_of_first_step(6)["seconds_left"].get<double>(), 25000, 50);
    context_.config.run.progress = config::ProgressOutput::human;
    context_.launch.repetition = 2;
    EXPECT_THAT(print_first_step(), testing::StartsWith("run 2 of 3  group 0  epoch 1/"));
    EXPECT_THAT(print_first_step(), testing::HasSubstr(" left in total  group 1 is slowest"));
}

}  // namespace
}  // namespace hpcai::group
