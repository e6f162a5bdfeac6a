// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "resumed_run.hpp"

/// Checkpoints on a full disk.
namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;

TEST_F(ResumedRun, OnAFullDiskContinuesTraining) {
    const Outcome outcome = begin(
        1, {"bagging.M=1", "run.checkpoint_steps=1", "workload.epochs=2", "run.keep_checkpoints=1"},
        "result",
        {"env", "LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK"),
         "HPCAI500_DISK_FOLDER=checkpoints/0", "HPCAI500_DISK_FAULT=full", "HPCAI500_DISK_CALL=3"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("cannot write the checkpoint of step 1: "
                                         "cannot write 'result/checkpoints/0/step-000000000001/"));
    EXPECT_THAT(outcome.error, HasSubstr("No space left on device"));
    EXPECT_THAT(outcome.error,
                HasSubstr("the checkpoint of step 2 is not kept: "
                          "'result/checkpoints/0/step-000000000002' does not exist"));
}

TEST_F(ResumedRun, ThatWasKilledAfterItsTrainingOnlyEvaluates) {
    const std::vector<std::string> changes{"bagging.M=1", "workload.epochs=2"};
    ASSERT_EQ(begin(1, changes, "whole").exit_code, 0);
    const Outcome killed = begin(1, changes, "result",
                                 {"env", "LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK"),
                                  "HPCAI500_DISK_FOLDER=weights.safetensors",
                                  "HPCAI500_DISK_FAULT=kill", "HPCAI500_DISK_CALL=1"});
    EXPECT_NE(killed.exit_code, 0);
    ASSERT_FALSE(fs::exists(folder_ / "result/groups/0/record.json"));
    const Outcome end = resume(1, "result");
    ASSERT_EQ(end.exit_code, 0) << end.error;
    const nlohmann::json group = result("result")["work"]["groups"][0];
    ASSERT_EQ(group["continuations"].size(), 1U);
    EXPECT_EQ(group["continuations"][0]["step"], group["iterations"]) << "no step is repeated";
    EXPECT_EQ(group["checkpoint_seconds"], 0.0) << "which does not count the last checkpoint";
    expect_the_same("result", "whole", 1);
    EXPECT_FALSE(fs::exists(folder_ / "result/checkpoints"));
}

/// A run whose only checkpoint is one to keep, killed while it stores the group.
TEST_F(ResumedRun, FindsACheckpointToKeepAfterAKill) {
    const Outcome killed = begin(
        1,
        {"bagging.M=1", "workload.epochs=2", "run.keep_checkpoints=1", "run.checkpoint_seconds=0"},
        "result",
        {"env", "LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK"),
         "HPCAI500_DISK_FOLDER=record.json", "HPCAI500_DISK_FAULT=kill", "HPCAI500_DISK_CALL=1"});
    EXPECT_NE(killed.exit_code, 0);
    ASSERT_TRUE(fs::exists(folder_ / "result/groups/0/checkpoints")) << killed.error;
    ASSERT_FALSE(fs::exists(folder_ / "result/groups/0/record.json"));
    const Outcome end = resume(1, "result");
    ASSERT_EQ(end.exit_code, 0) << end.error;
    const nlohmann::json group = result("result")["work"]["groups"][0];
    ASSERT_EQ(group["continuations"].size(), 1U);
    EXPECT_EQ(group["continuations"][0]["step"], group["iterations"].get<int>() / 2);
    EXPECT_FALSE(fs::exists(folder_ / "result/checkpoints"));
    EXPECT_FALSE(fs::is_empty(folder_ / "result/groups/0/checkpoints"));
}

TEST_F(ResumedRun, LeavesNothingOfACheckpointThatOneRankCouldNotWrite) {
    write(folder_ / "failing.sh",
          fmt::format("#!/bin/bash\nif [ \"${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}\" = 1 ]; then\n"
                      "  export LD_PRELOAD={}\nfi\nexec \"$HPCAI500_BINARY\" \"$@\"\n",
                      cli::environment("HPCAI500_FAILING_DISK")));
    fs::permissions(folder_ / "failing.sh", fs::perms::owner_all);
    Launch launch{folder_.path(),
                  2,
                  {"bagging.M=1", "bagging.P_degree=2", "training.batch_size=12",
                   "workload.epochs=2", "run.time_limit_seconds=0.001"},
                  {"env", "HPCAI500_DISK_FOLDER=checkpoints/0", "HPCAI500_DISK_FAULT=full",
                   "HPCAI500_DISK_CALL=1"}};
    launch.program = (folder_ / "failing.sh").string();
    const Outcome outcome = run(launch);
    EXPECT_EQ(outcome.exit_code, 1) << outcome.error;
    EXPECT_THAT(outcome.error, HasSubstr("No space left on device"));
    EXPECT_FALSE(fs::exists(folder_ / "result/checkpoints/0/step-000000000001"));
}

TEST_F(ResumedRun, ReportsThatAStopHasNotBeenSaved) {
    const Outcome outcome = begin(
        1, {"bagging.M=1", kOneStep}, "result",
        {"env", "LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK"),
         "HPCAI500_DISK_FOLDER=checkpoints/0", "HPCAI500_DISK_FAULT=full", "HPCAI500_DISK_CALL=3"});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("without a checkpoint: cannot write 'result/checkpoints"));
    EXPECT_EQ(last_line(outcome.out), "STOPPED step=0 resume: " + resume_command(1));
    const Outcome status = cli::run_in(folder_.path(), {"status", "result"});
    EXPECT_EQ(status.exit_code, 1) << "which a batch script does not requeue";
    EXPECT_THAT(last_line(status.out), HasSubstr("STATUS UNSAVED  groups=1 unsaved=1"));
    EXPECT_EQ(last_line(resume(1, "result").out), "STOPPED step=1 resume: " + resume_command(1));
}

}  // namespace
}  // namespace hpcai::end_to_end
