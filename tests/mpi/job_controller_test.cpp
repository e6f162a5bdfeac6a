// SPDX-License-Identifier: Apache-2.0
#include "benchmark/job_controller.hpp"

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/config/writer.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "storage/temporary_folder.hpp"
#include "world.hpp"

namespace hpcai::benchmark {
namespace {

namespace fs = std::filesystem;
using mpi_tests::world;

/// A job whose groups have one rank each and have ended, with or without success.
class FinishedJob : public testing::Test {
protected:
    struct Run {
        context::RunContext context;
        LaunchRecord launch;
        data::SampleSets samples;
    };

    Run make_run(const fs::path& output) const {
        const int ranks = world().mpi.size();
        config::Config config;
        config.bagging.groups = ranks;
        config.bagging.degree = 1;
        config.data.kind = config::DataKind::synthetic;
        config.workload.classes = 4;
        const plan::Layout layout =
            plan::make_layout(config.bagging, config.training, {}, ranks, ranks);
        plan::ParallelismController controller(layout, world().node_of_world_rank);
        const plan::RankPlace place = controller.place(world().mpi.rank());
        Run run{.context = {.config = config,
                            .config_text = config::to_yaml(config),
                            .controller = std::move(controller),
                            .place = place,
                            .output = output,
                            .hosts = world().hosts,
                            .ranks = std::vector<context::RankFacts>(
                                static_cast<std::size_t>(ranks), {1, "paper"})},
                .samples = {data::make_synthetic_samples(config, data::Split::training),
                            data::make_synthetic_samples(config, data::Split::validation)}};
        run.launch.precision = "fp32";
        run.launch.started_utc = "2022-11-05T14:03:09Z";
        run.launch.staging = run.samples.staging.record;
        return run;
    }

    group::GroupOutcome failed() const {
        group::GroupOutcome outcome;
        outcome.result.record.failure = "no data";
        outcome.status = comm::GroupStatus::of(world().mpi.rank(), comm::GroupState::failed,
                                               ExitCode::data, "no data");
        return outcome;
    }

    group::GroupOutcome completed() const {
        group::GroupOutcome outcome;
        outcome.result.record.group = world().mpi.rank();
        outcome.predictions.validation.outputs = {0.1F, 0.2F, 0.3F, 0.4F};
        outcome.predictions.validation.labels = {3};
        outcome.status = comm::GroupStatus::of(world().mpi.rank(), comm::GroupState::completed);
        return outcome;
    }

    results::RunEnd end_of(const Run& run, const group::GroupOutcome& outcome) {
        world().everyone.barrier();
        const Stopwatch watch;
        JobController controller({run.context, run.launch, run.samples}, world().mpi, watch);
        const auto log = make_logger("test", (folder_.path() / "log.txt").string());
        testing::internal::CaptureStderr();
        const results::RunEnd end = controller.finish(outcome, *log, out_);
        error_ = testing::internal::GetCapturedStderr();
        seconds_ = watch.seconds();
        world().everyone.barrier();
        return end;
    }
    ExitCode finish(const Run& run, const group::GroupOutcome& outcome) {
        const results::RunEnd end = end_of(run, outcome);
        EXPECT_FALSE(end.has_next_run);
        return end.code;
    }

    /// Returns the first of two runs; only rank 0 writes.
    Run make_first_of_two() const {
        fs::create_directories(folder_ / "repetition_1");
        Run run = make_run(folder_ / "repetition_1");
        run.context.launch.repetitions = 2;
        config::Config config = run.context.config;
        config.run.repeat = 2;
        if (world().mpi.rank() == 0) std::ofstream(folder_ / "config.yaml") << to_yaml(config);
        return run;
    }

    storage::TemporaryFolder folder_;
    std::ostringstream out_;
    std::string error_;
    double seconds_ = 0;
};

TEST_F(FinishedJob, TheWriterStoresTheResultEvenWhenTheCommandLineIsNotUtf8) {
    Run run = make_run(folder_.path());
    run.launch.environment["command_line"] = "hpcai500 run --config caf\xe9.yaml";
    const ExitCode code = finish(run, failed());
    const bool writes = world().mpi.rank() == 0;
    EXPECT_EQ(code, writes ? ExitCode::data : ExitCode::ok) << error_;
    EXPECT_EQ(fs::exists(folder_.path() / "environment.json"), writes);
    EXPECT_EQ(fs::exists(folder_.path() / "result.json"), writes);
    EXPECT_EQ(out_.str().find("RESULT INVALID") != std::string::npos, writes);
}

TEST_F(FinishedJob, TheSummaryIsPrintedEvenWhenTheFilesCannotBeWritten) {
    const Run run = make_run("/dev/null/result");
    const ExitCode code = finish(run, failed());
    if (world().mpi.rank() != 0) {
        EXPECT_EQ(code, ExitCode::ok);
        return;
    }
    EXPECT_NE(code, ExitCode::ok);
    EXPECT_NE(out_.str().find("RESULT INVALID"), std::string::npos);
    EXPECT_TRUE(out_.str().ends_with(" manifest=none\n")) << out_.str();
    EXPECT_NE(error_.find("/dev/null/result"), std::string::npos) << error_;
}

TEST_F(FinishedJob, PrintsNothingButJsonOnStandardOutputIfAskedTo) {
    Run run = make_first_of_two();
    run.context.config.run.progress = config::ProgressOutput::json;
    group::GroupOutcome lost = failed();
    if (world().mpi.rank() == world().mpi.size() - 1) lost.status.exit_code = ExitCode::watchdog;
    end_of(run, lost);
    if (world().mpi.rank() != 0) return;
    const std::string events = out_.str();
    const std::size_t second = events.find('\n') + 1;
    const nlohmann::json line = nlohmann::json::parse(events.substr(0, second));
    EXPECT_EQ(line["event"], "result");
    EXPECT_EQ(line["directory"], (folder_ / "repetition_1").string());
    EXPECT_EQ(line["repetition"], 1);
    const nlohmann::json series = nlohmann::json::parse(events.substr(second));
    EXPECT_EQ(series["event"], "repetitions");
    EXPECT_EQ(series["directory"], folder_.path().string());
    EXPECT_EQ(series["runs"], 1);
    EXPECT_EQ(series["requested"], 2);
    EXPECT_EQ(series["stopped"].get<std::string>().substr(0, 22), "repetition 2 needs all");
    EXPECT_EQ(series["sha256"], storage::sha256_hex_of_file(folder_ / "repetitions.json"));
    EXPECT_EQ(line["status"], "INVALID");
    EXPECT_EQ(line["manifest"],
              storage::sha256_hex_of_file(folder_ / "repetition_1/manifest.sha256"));
    EXPECT_NE(error_.find("\nRESULT INVALID"), std::string::npos) << error_;
    EXPECT_NE(error_.find("\nREPETITIONS 1 of 2"), std::string::npos) << error_;
}

TEST_F(FinishedJob, IsFollowedByAnotherRunWhereEveryRankAnswers) {
    const Run run = make_first_of_two();
    const results::RunEnd end = end_of(run, failed());
    EXPECT_TRUE(end.has_next_run) << error_;
    EXPECT_EQ(end.code, ExitCode::ok) << "the result has it";
    comm::StartUp again = world().mpi.start_up();
    EXPECT_EQ(again.everyone().size(), world().mpi.size());
    if (world().mpi.rank() != 0) return;
    const RepetitionsRecord record = verification::read_repetitions(folder_.path());
    ASSERT_EQ(record.repetitions.size(), 1U);
    EXPECT_EQ(record.exit_code, ExitCode::data);
    EXPECT_EQ(record.stopped, "repetition 2 has not ended");
    EXPECT_EQ(out_.str().find("REPETITIONS"), std::string::npos);
}

TEST_F(FinishedJob, IsTheLastWhereARankOfAGroupDoesNotAnswer) {
    const Run run = make_first_of_two();
    group::GroupOutcome lost = failed();
    if (world().mpi.rank() == world().mpi.size() - 1) {
        lost.status.exit_code = ExitCode::watchdog;
    }
    const results::RunEnd end = end_of(run, lost);
    EXPECT_FALSE(end.has_next_run);
    EXPECT_THROW(world().mpi.start_up(), Error);
    if (world().mpi.rank() != 0) return;
    EXPECT_NE(end.code, ExitCode::ok);
    EXPECT_NE(out_.str().find("REPETITIONS 1 of 2"), std::string::npos) << out_.str();
    const RepetitionsRecord record = verification::read_repetitions(folder_.path());
    EXPECT_NE(record.stopped.find("not every rank answered"), std::string::npos);
}

TEST_F(FinishedJob, AVoteThatFailsAtTheRootKeepsNoLeaderWaiting) {
    const Run run = make_run(folder_.path());
    group::GroupOutcome outcome = completed();
    if (world().mpi.rank() == 0)
        outcome.predictions.validation.labels.clear();  // rank 0 cannot count the samples
    const ExitCode code = finish(run, outcome);
    EXPECT_LT(seconds_, 15) << "the wait for a rank that never comes would be 30 s";
    if (world().mpi.rank() == 0) {
        EXPECT_NE(code, ExitCode::ok);
        EXPECT_NE(error_, "");
        EXPECT_FALSE(fs::exists(folder_.path() / "result.json"));
    }
}

}  // namespace
}  // namespace hpcai::benchmark
