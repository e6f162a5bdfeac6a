// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "search_run.hpp"

/// Architecture searches that were stopped or killed.
namespace hpcai::end_to_end {
namespace {

class ResumedSearch : public SearchRun {
protected:
    static Outcome resume(int ranks, const std::string& output,
                          const std::vector<std::string>& options = {}) {
        std::vector<std::string> words{
            cli::environment("HPCAI500_MPIRUN"), "--bind-to", "none", "-np", std::to_string(ranks),
            cli::environment("HPCAI500_BINARY"), "resume",    output};
        words.insert(words.end(), options.begin(), options.end());
        return cli::execute_in(folder_->path(), words);
    }

    /// A search of one group that was killed in its fourth trial or later.
    static void kill_search(const std::string& output) {
        write(*folder_ / "killed.sh",
              fmt::format("#!/bin/bash\n"
                          "( until [ \"$(wc -l < {}/groups/0/trials.jsonl)\" -ge 7 ]; do\n"
                          "    kill -0 $$ || exit\n    sleep 0.02\n  done 2> /dev/null\n"
                          "  kill -KILL $$ ) &\n"
                          "exec \"$HPCAI500_BINARY\" \"$@\"\n",
                          output));
        fs::permissions(*folder_ / "killed.sh", fs::perms::owner_all);
        Launch launch{folder_->path(), 1, {"search.trials=8", "bagging.M=1"}, {}, output};
        launch.program = (*folder_ / "killed.sh").string();
        EXPECT_NE(run(launch).exit_code, 0);
    }

    /// Damages the checkpoint of the last finished trial.
    static void damage_newest_checkpoint(const std::string& output) {
        std::size_t epochs = 0;
        for (const auto& line : trials_in(*folder_ / output, 0))
            if (line.contains("accuracy")) epochs += line["accuracy"].size();
        const auto held_out = lines_of(text_of(result("evaluation/hold_out.txt"))).size();
        const std::size_t steps = epochs * ((24 - held_out) / 4);
        const fs::path file =
            *folder_ /
            fmt::format("{}/checkpoints/0/step-{:012}/rank-0.safetensors", output, steps);
        ASSERT_TRUE(fs::exists(file)) << file;
        write(file, "damaged");
    }
};

TEST_F(ResumedSearch, ContinuesAfterAStop) {
    const Outcome stopped = run_ranks(
        folder_->path(), 2,
        {"search.trials=0", "search.duration_seconds=20", "run.time_limit_seconds=10"}, "stopped");
    ASSERT_EQ(stopped.exit_code, 8) << stopped.out << stopped.error;
    const std::size_t before = trials_in(*folder_ / "stopped", 0).size();
    const nlohmann::json progress = json_of(*folder_ / "stopped/groups/0/progress.json");
    const fs::path checkpoint = *folder_ / fmt::format("stopped/checkpoints/0/step-{:012}",
                                                       progress["step"].get<std::int64_t>());
    EXPECT_TRUE(fs::exists(checkpoint)) << "status counts the steps of the unfinished trial";
    const Outcome resumed = resume(2, "stopped", {"--set", "run.time_limit_seconds=0"});
    ASSERT_EQ(resumed.exit_code, 0) << resumed.out << resumed.error;
    EXPECT_GT(trials_in(*folder_ / "stopped", 0).size(), before);
    expect_verified(*folder_ / "stopped");
}

TEST_F(ResumedSearch, TrainsTheLastTrialAgainIfItsCheckpointIsDamaged) {
    kill_search("killed");
    damage_newest_checkpoint("killed");
    const Outcome resumed = resume(1, "killed");
    ASSERT_EQ(resumed.exit_code, 0) << resumed.out << resumed.error;
    EXPECT_NE(text_of(*folder_ / "killed/groups/0/log.txt").find("last trial is trained again"),
              std::string::npos);
    EXPECT_EQ(trials_in(*folder_ / "killed", 0).size(), 16U);
    expect_verified(*folder_ / "killed");
}

}  // namespace
}  // namespace hpcai::end_to_end
