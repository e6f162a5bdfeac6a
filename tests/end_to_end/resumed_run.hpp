// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <hpcai/report/csv.hpp>

#include "launch.hpp"
#include "storage/temporary_folder.hpp"

/// Runs that stop at a checkpoint or die, and are then resumed.
namespace hpcai::end_to_end {

// The time limit has expired at the first check, so each launch trains one step.
inline constexpr const char* kOneStep = "run.time_limit_seconds=0.001";

class ResumedRun : public testing::Test {
protected:
    void SetUp() override {
        make_pictures(folder_.path());
        write(folder_ / "tiny.yaml", kConfig);
    }

    Outcome begin(int ranks, std::vector<std::string> changes, const std::string& output,
                  const std::vector<std::string>& options = {}) const {
        changes.insert(changes.end(), {"run.deterministic=true", "training.batch_size=12"});
        return run({folder_.path(), ranks, changes, options, output});
    }
    Outcome resume(int ranks, const std::string& output) const {
        return cli::execute_in(
            folder_.path(),
            {cli::environment("HPCAI500_MPIRUN"), "--bind-to", "none", "-np", std::to_string(ranks),
             cli::environment("HPCAI500_BINARY"), "resume", output});
    }
    /// Resumes a run that has ended with `outcome` until it finishes.
    Outcome resume_to_the_end(int ranks, const std::string& output, Outcome outcome, int steps) {
        for (int step = 1; step <= steps; ++step) {
            EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
            EXPECT_EQ(last_line(outcome.out), fmt::format("STOPPED step={} resume: {}", step,
                                                          resume_command(ranks, output)));
            EXPECT_FALSE(fs::exists(folder_ / (output + "/result.json")));
            expect_kept(output, step);
            outcome = resume(ranks, output);
        }
        return outcome;
    }
    /// Expects the last two checkpoints and no others.
    void expect_kept(const std::string& output, int step) const {
        for (int other = 1; other <= step; ++other) {
            EXPECT_EQ(
                fs::exists(folder_ / fmt::format("{}/checkpoints/0/step-{:012}", output, other)),
                other + 2 > step)
                << other << " at step " << step;
        }
    }
    nlohmann::json result(const std::string& output) const {
        return json_of(folder_ / (output + "/result.json"));
    }
    std::vector<StepRecord> steps(const std::string& output, int group) const {
        return report::steps_from_csv(
            text_of(folder_ / fmt::format("{}/groups/{}/steps.csv", output, group)), "steps.csv");
    }
    void expect_the_same(const std::string& output, const std::string& whole, int groups) const {
        const nlohmann::json mine = result(output), other = result(whole);
        EXPECT_EQ(mine["training_digest"], other["training_digest"]);
        EXPECT_EQ(mine["quality"], other["quality"]);
        EXPECT_EQ(mine["work"]["samples_trained"], other["work"]["samples_trained"]);
        for (int group = 0; group < groups; ++group) {
            const std::string file = fmt::format("/groups/{}/predictions.npy", group);
            EXPECT_TRUE(text_of(folder_ / (output + file)) == text_of(folder_ / (whole + file)));
            const auto taken = steps(output, group), expected = steps(whole, group);
            ASSERT_EQ(taken.size(), expected.size());
            for (std::size_t step = 0; step < taken.size(); ++step) {
                EXPECT_EQ(taken[step].epoch, expected[step].epoch);
                EXPECT_EQ(taken[step].learning_rate, expected[step].learning_rate);
                EXPECT_EQ(taken[step].loss, expected[step].loss) << step;
            }
        }
        expect_verified(output);
    }
    void expect_verified(const std::string& output) const {
        const Outcome verified = cli::run_in(folder_.path(), {"verify", output});
        EXPECT_EQ(verified.exit_code, 0) << verified.out;
        const Outcome again = cli::execute_in(
            folder_.path(), {"python3", cli::source("scripts/verify_result"), output});
        EXPECT_EQ(again.exit_code, 0) << again.out;
    }
    /// Expects that a run of `ranks` with one step per launch ends with the bits of a run without a
    /// stop.
    void expect_the_bits_of_one_program(int ranks, int steps,
                                        const std::vector<std::string>& changes) {
        ASSERT_EQ(begin(ranks, changes, "whole").exit_code, 0);
        std::vector<std::string> limited = changes;
        limited.push_back(kOneStep);
        const Outcome end =
            resume_to_the_end(ranks, "result", begin(ranks, limited, "result"), steps);
        ASSERT_EQ(end.exit_code, 0) << end.error;
        const nlohmann::json groups = result("result")["work"]["groups"];
        expect_the_same("result", "whole", static_cast<int>(groups.size()));
        for (const nlohmann::json& group : groups) {
            ASSERT_EQ(group["continuations"].size(), static_cast<std::size_t>(steps));
            for (int step = 1; step <= steps; ++step) {
                EXPECT_EQ(group["continuations"][static_cast<std::size_t>(step) - 1]["step"], step);
            }
        }
        EXPECT_FALSE(fs::exists(folder_ / "result/checkpoints"));
        EXPECT_FALSE(fs::exists(folder_ / "result/attempts/1/result.json"));
        EXPECT_TRUE(fs::exists(folder_ / "result/attempts/1/groups/0/record.json"))
            << "of the group when it was stopped";
    }

    storage::TemporaryFolder folder_;
};

}  // namespace hpcai::end_to_end
