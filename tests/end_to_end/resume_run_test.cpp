// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "resumed_run.hpp"

namespace hpcai::end_to_end {
namespace {

using testing::HasSubstr;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

TEST_F(ResumedRun, HasTheBitsOfOneProgramOverTheEndOfAnEpoch) {
    expect_the_bits_of_one_program(
        1, 4,
        {"bagging.M=1", "workload.epochs=2", "training.optimizer=adam",
         "training.learning_rate=0.001", "training.schedule=cosine", "run.evaluate_epochs=1"});
}

TEST_F(ResumedRun, ThatWasKilledThreeTimesHasTheBitsOfOneProgram) {
    const Strings changes{"bagging.M=1", "bagging.P_degree=2", "workload.epochs=30",
                          "run.checkpoint_steps=2"};
    ASSERT_EQ(begin(2, changes, "whole").exit_code, 0);
    const std::string mpirun = cli::environment("HPCAI500_MPIRUN") + " --bind-to none -np 2 " +
                               cli::environment("HPCAI500_BINARY");
    std::string begins = mpirun + " run --config tiny.yaml --output result";
    for (const std::string& change : changes) begins += " --set " + change;
    begins += " --set run.deterministic=true --set training.batch_size=12";
    const std::string resumes = mpirun + " resume result";
    // Both ranks die as soon as the program has begun its second checkpoint. Without a complete
    // checkpoint, the record of its resumption would be lost, too.
    const std::string script =
        "marked() { find result/checkpoints/0 -name 'rank-*.done' -printf '%h\\n' 2> /dev/null | "
        "sort; }\n"
        "newest() { marked | tail -n 1; }\n"
        "newest_whole() { marked | uniq -d | tail -n 1; }\n"
        "newest_begun() { find result/checkpoints/0 -name 'step-*' | sort | tail -n 1; }\n"
        "is_killed() {\n  before=$(newest)\n  $1 &\n"
        "  until [[ $(newest_whole) > $before ]]; do kill -0 $! || return 1; sleep 0.01; done\n"
        "  whole=$(newest_whole)\n"
        "  until [[ $(newest_begun) > $whole ]]; do kill -0 $! || return 1; sleep 0.01; done\n"
        "  pkill -9 -P $!; ! wait $!\n}\n" +
        fmt::format("is_killed '{0}' && is_killed '{1}' && is_killed '{1}'", begins, resumes);
    const Outcome killed = cli::execute_in(folder_.path(), {"bash", "-c", script});
    ASSERT_EQ(killed.exit_code, 0) << killed.error;
    ASSERT_EQ(resume(2, "result").exit_code, 0);
    EXPECT_EQ(result("result")["work"]["groups"][0]["continuations"].size(), 3U);
    expect_the_same("result", "whole", 1);
}

TEST_F(ResumedRun, HasTheBitsOfOneProgramInGroupsOfRanks) {
    expect_the_bits_of_one_program(
        4, 2, {"bagging.P_degree=2", "run.checkpoint_steps=1", "run.audit_steps=2"});
}

TEST_F(ResumedRun, HasTheBitsOfOneProgramWithErrorFeedback) {
    expect_the_bits_of_one_program(
        2, 2, {"bagging.M=1", "bagging.P_degree=2", "communication.precision=int8"});
}

TEST_F(ResumedRun, HasTheBitsOfOneProgramInAPipeline) {
    expect_the_bits_of_one_program(
        4, 2,
        {"bagging.M=1", "bagging.P_degree=4", "parallel.mode=pipeline",
         "parallel.pipeline_degree=2", "parallel.micro_batches=2", "training.learning_rate=0.001"});
}

TEST_F(ResumedRun, ReportsHowTheRightNumberOfRanksResumesIt) {
    EXPECT_EQ(begin(2, {kOneStep}, "result").exit_code, 8);
    const Outcome fewer = resume(1, "result");
    EXPECT_EQ(fewer.exit_code, 3);
    EXPECT_THAT(
        messages(fewer),
        testing::ElementsAre("hpcai500: result: the run began with 2 ranks, not 1; start it as `" +
                             resume_command(2) + "`"));
    EXPECT_TRUE(fs::exists(folder_ / "result/checkpoints/1/step-000000000001/rank-0.done"));
    std::string config = text_of(folder_ / "result/config.yaml");
    const std::string rate = "learning_rate: ";
    config.insert(config.find("\n  " + rate) + 3 + rate.size(), "1");
    write(folder_ / "result/config.yaml", config);
    const Outcome other = resume(2, "result");
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.error,
                HasSubstr("result/config.yaml: differs from the configuration with which "
                          "the run began"));
    EXPECT_TRUE(fs::exists(folder_ / "result/checkpoints/1/step-000000000001/rank-0.done"));
    const Outcome nowhere = resume(1, "nowhere");
    EXPECT_EQ(nowhere.exit_code, 2);
    EXPECT_THAT(nowhere.error, HasSubstr("nowhere: expected the result directory of a run"));
}

TEST_F(ResumedRun, ContinuesFromTheCheckpointBeforeADamagedOne) {
    const Strings changes{"bagging.M=1", "bagging.P_degree=2"};
    ASSERT_EQ(begin(2, changes, "whole").exit_code, 0);
    EXPECT_EQ(begin(2, {changes[0], changes[1], kOneStep}, "result").exit_code, 8);
    EXPECT_EQ(resume(2, "result").exit_code, 8);
    const fs::path damaged = folder_ / "result/checkpoints/0/step-000000000002/rank-1.safetensors";
    std::fstream file(damaged, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file.put('\x55').put('\x55').put('\x55');
    file.close();
    const Outcome again = resume(2, "result");
    const std::string log = text_of(folder_ / "result/groups/0/log.txt");
    EXPECT_THAT(log, HasSubstr("the checkpoint of step 2 cannot be used: 'result/checkpoints/0/"
                               "step-000000000002/rank-1.safetensors': has the SHA-256"));
    EXPECT_THAT(log,
                HasSubstr("group 0 has to be trained: it has stored no record since the one in "
                          "'result/attempts/2/groups/0'"));
    EXPECT_EQ(last_line(again.out), "STOPPED step=2 resume: " + resume_command(2));
    EXPECT_EQ(resume(2, "result").exit_code, 0);
    expect_the_same("result", "whole", 1);
}

TEST_F(ResumedRun, StopsAfterADamagedCheckpointOfALaterStep) {
    const Strings changes{"bagging.M=1", "run.progress=json", "workload.epochs=4",
                          "run.keep_checkpoints=1", kOneStep};
    const Outcome first = begin(1, changes, "result");
    EXPECT_EQ(first.exit_code, 8);
    std::istringstream out(first.out);
    for (std::string line; std::getline(out, line);)
        EXPECT_TRUE(nlohmann::json::accept(line)) << line;
    EXPECT_THAT(first.out, HasSubstr(R"(Z","directory":"result","repetition":null,"group":0,)"));
    EXPECT_EQ(resume(1, "result").exit_code, 8);
    const fs::path folder = folder_ / "result/checkpoints/0";
    fs::rename(folder / "step-000000000002", folder / "step-000000000004");  // a step to keep
    const Outcome stopped = resume(1, "result");
    EXPECT_EQ(stopped.exit_code, 8) << stopped.out << stopped.error;
    const nlohmann::json last = nlohmann::json::parse(last_line(stopped.out));
    EXPECT_EQ(last["event"], "stopped");
    EXPECT_EQ(last["step"], 2);
    EXPECT_EQ(last["resume"], resume_command(1));
    EXPECT_FALSE(fs::exists(folder / "step-000000000004"));
}

TEST_F(ResumedRun, DoesNotBeginAgainWhereItsCheckpointsCannotBeUsed) {
    EXPECT_EQ(begin(1, {"bagging.M=1", kOneStep}, "result").exit_code, 8);
    const fs::path folder = folder_ / "result/checkpoints/0";
    write(folder / "step-000000000001/rank-0.safetensors", "lost");
    const Outcome refused = resume(1, "result");
    EXPECT_EQ(refused.exit_code, 4) << refused.error;
    EXPECT_THAT(refused.out,
                HasSubstr("reason: group 0: 'result/checkpoints/0': no checkpoint in this folder "
                          "can be used: 'result/checkpoints/0/step-000000000001/"
                          "rank-0.safetensors': has 4 bytes; its marker states "));
    EXPECT_EQ(text_of(folder / "step-000000000001/rank-0.safetensors"), "lost");
    fs::remove_all(folder);
    EXPECT_EQ(last_line(resume(1, "result").out), "STOPPED step=1 resume: " + resume_command(1));
    EXPECT_TRUE(fs::exists(folder_ / "result/attempts/2/result.json"));
}

TEST_F(ResumedRun, TakesNoCheckpointOfTwoPrograms) {
    const Strings changes{"bagging.M=1", "bagging.P_degree=2", kOneStep};
    for (const char* output : {"result", "other"}) {
        EXPECT_EQ(begin(2, changes, output).exit_code, 8);
        EXPECT_EQ(resume(2, output).exit_code, 8);
    }
    for (const char* suffix : {".safetensors", ".done"}) {
        const std::string file = std::string("/checkpoints/0/step-000000000002/rank-1") + suffix;
        fs::copy_file(folder_ / ("other" + file), folder_ / ("result" + file),
                      fs::copy_options::overwrite_existing);
    }
    const Outcome again = resume(2, "result");
    EXPECT_THAT(again.error,
                HasSubstr("the checkpoint of step 2 cannot be used: its files are from different "
                          "launches"));
    EXPECT_THAT(text_of(folder_ / "result/groups/0/log.txt"),
                testing::ContainsRegex("step 2 cannot be used(.|\n)*training resumes from step 1"));
}

TEST_F(ResumedRun, ContinuesWhereARankWasKilledInACheckpoint) {
    const Strings changes{"bagging.M=1", "bagging.P_degree=2", "workload.epochs=2",
                          "run.checkpoint_steps=1"};
    ASSERT_EQ(begin(2, changes, "whole").exit_code, 0);
    const Outcome killed = begin(2, changes, "result",
                                 {"env", "LD_PRELOAD=" + cli::environment("HPCAI500_FAILING_DISK"),
                                  "HPCAI500_DISK_FOLDER=checkpoints/0", "HPCAI500_DISK_FAULT=kill",
                                  "HPCAI500_DISK_CALL=40"});
    EXPECT_NE(killed.exit_code, 0);
    ASSERT_FALSE(fs::exists(folder_ / "result/result.json"));
    ASSERT_TRUE(fs::exists(folder_ / "result/checkpoints/0"));
    const Outcome end = resume(2, "result");
    ASSERT_EQ(end.exit_code, 0) << end.error;
    const Json went_on = result("result")["work"]["groups"][0]["continuations"];
    ASSERT_EQ(went_on.size(), 1U);
    EXPECT_GT(went_on[0]["step"], 0);
    expect_the_same("result", "whole", 1);
}

TEST_F(ResumedRun, StopsNextToAGroupThatHasFinished) {
    EXPECT_EQ(begin(2, {kOneStep}, "result").exit_code, 8);
    EXPECT_EQ(resume(2, "result").exit_code, 8);
    ASSERT_EQ(resume(2, "result").exit_code, 0);
    for (const char* name : {"groups/1/record.json", "result.json", "manifest.sha256"})
        fs::remove(folder_ / "result" / name);
    const Outcome stopped = resume(2, "result");
    EXPECT_EQ(stopped.exit_code, 8) << stopped.error;
    EXPECT_THAT(stopped.error, HasSubstr("stopping at a checkpoint")) << "group 0 cannot log it";
    EXPECT_THAT(stopped.out, HasSubstr("group 0: finished\ngroup 1: stopped at step 1 by "));
    EXPECT_EQ(last_line(stopped.out), "STOPPED step=1 resume: " + resume_command(2));
    EXPECT_FALSE(fs::exists(folder_ / "result/checkpoints/0"));
    EXPECT_EQ(resume(2, "result").exit_code, 8);
    EXPECT_EQ(resume(2, "result").exit_code, 0);
}

TEST_F(ResumedRun, LocksItsDirectoryAgainstAnotherProgram) {
    const std::string mpirun = cli::environment("HPCAI500_MPIRUN") + " --bind-to none -np 1 " +
                               cli::environment("HPCAI500_BINARY");
    const std::string script = fmt::format(
        "{} run --config tiny.yaml --output result --set bagging.M=1 "
        "--set workload.epochs=30000 --set run.checkpoint_steps=1 & "
        "until ls result/checkpoints/0/*/rank-0.done > /dev/null 2>&1; do kill -0 $! || exit 99; "
        "sleep 0.02; done; {} resume result; echo \"resume $?\"; "
        "{} score result; echo \"score $?\"; kill -USR1 $!; wait $!",
        mpirun, mpirun, cli::environment("HPCAI500_BINARY"));
    const Outcome outcome = cli::execute_in(folder_.path(), {"bash", "-c", script});
    EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("resume 2\n"));
    EXPECT_THAT(outcome.out, HasSubstr("score 2\n"));
    EXPECT_THAT(messages(outcome), testing::Each(HasSubstr("result: another program uses it")));
    EXPECT_EQ(messages(outcome).size(), 2U);
}

TEST_F(ResumedRun, LosesNothingOfAGroupThatCannotVoteThisTime) {
    ASSERT_EQ(begin(2, {}, "result").exit_code, 0);
    for (const char* name : {"result.json", "manifest.sha256"}) {
        fs::remove(folder_ / "result" / name);
    }
    const fs::path predictions = folder_ / "result/groups/1/predictions.npy";
    const std::string bytes = text_of(predictions);
    write(predictions, bytes + "x");
    const Outcome refused = resume(2, "result");
    EXPECT_EQ(refused.exit_code, 4) << refused.out;
    EXPECT_THAT(messages(refused),
                testing::ElementsAre(
                    "hpcai500: result: group 1 had finished, but 'result/groups/1/predictions.npy' "
                    "does not have the digest in the group's record.json; if the file cannot be "
                    "restored, remove 'result/groups/1' to train the group from the beginning"));
    write(predictions, bytes);
    const fs::path file = folder_ / "result/groups/0/record.json";
    const std::string record = text_of(file);
    Json changed = json_of(file);
    changed["quality"] = 0.9375;
    write(file, changed.dump());
    const Outcome partial = resume(2, "result");
    EXPECT_EQ(partial.exit_code, 7) << partial.error;
    EXPECT_THAT(partial.out, HasSubstr("top_1_accuracy is 0.9375"));
    EXPECT_EQ(text_of(file), changed.dump());
    write(file, record);
    const Outcome end = resume(2, "result");
    EXPECT_EQ(end.exit_code, 0) << end.out << end.error;
}

TEST_F(ResumedRun, IsRejectedWithOtherSamples) {
    EXPECT_EQ(begin(2, {kOneStep}, "result").exit_code, 8);
    const fs::path picture = folder_ / "set/train/0002_star_mesh/000003.jpg";
    fs::rename(picture, folder_ / "kept.jpg");
    const Outcome refused = resume(2, "result");
    EXPECT_EQ(refused.exit_code, 4) << refused.out;
    EXPECT_THAT(refused.error,
                HasSubstr("result: the run began with other training or test samples"));
    fs::rename(folder_ / "kept.jpg", picture);
    EXPECT_EQ(resume(2, "result").exit_code, 8);
}

TEST_F(ResumedRun, IsAtWorkBeforeItsGroupsHaveWrittenProgress) {
    EXPECT_EQ(begin(2, {kOneStep}, "result").exit_code, 8);
    const std::vector<std::string> status{cli::environment("HPCAI500_BINARY"), "status", "result"};
    EXPECT_EQ(cli::execute_in(folder_.path(), status).exit_code, 8);
    std::vector<std::string> while_locked{"flock", "result/config.yaml"};
    while_locked.insert(while_locked.end(), status.begin(), status.end());
    const Outcome outcome = cli::execute_in(folder_.path(), while_locked);
    EXPECT_EQ(outcome.exit_code, 6) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("; ask again\nSTATUS UNFINISHED  groups=2 stopped=2"));
}

TEST_F(ResumedRun, StopsAtTheSameStepOnAllRanksBySignal) {
    const std::string script = fmt::format(
        "{} --bind-to none -np 2 {} run --config tiny.yaml --output result --set bagging.M=1 "
        "--set bagging.P_degree=2 --set workload.epochs=30000 --set run.checkpoint_steps=1 & "
        "until ls result/checkpoints/0/*/rank-0.done > /dev/null 2>&1; do kill -0 $! || exit 99; "
        "sleep 0.02; done; kill -USR1 $!; wait $!",
        cli::environment("HPCAI500_MPIRUN"), cli::environment("HPCAI500_BINARY"));
    const Outcome outcome = cli::execute_in(folder_.path(), {"bash", "-c", script});
    EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
    EXPECT_THAT(outcome.out, HasSubstr("by SIGUSR1"));
    EXPECT_THAT(last_line(outcome.out),
                testing::MatchesRegex("STOPPED step=[0-9]+ resume: " + resume_command(2)));
    const Json record = json_of(folder_ / "result/groups/0/record.json");
    const fs::path newest =
        folder_ / fmt::format("result/checkpoints/0/step-{:012}",
                              record["record"]["iterations"].get<std::int64_t>());
    EXPECT_TRUE(fs::exists(newest / "rank-0.done") && fs::exists(newest / "rank-1.done"));
}

TEST_F(ResumedRun, StopsAtACheckpointByTheFirstInterrupt) {
    const std::string program = cli::environment("HPCAI500_BINARY");
    const std::string script = fmt::format(
        "{} run --config tiny.yaml --output result --set bagging.M=1 "
        "--set workload.epochs=30000 & "
        "until [[ -e result/groups/0/progress.json ]]; do kill -0 $! || exit 99; sleep 0.02; done; "
        "kill -INT $!; wait $!",
        program);
    const Outcome outcome = cli::execute_in(folder_.path(), {"bash", "-c", script});
    EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
    EXPECT_THAT(outcome.out, testing::ContainsRegex("by SIGINT\nSTOPPED step=.* resume: "));
    EXPECT_THAT(outcome.error, HasSubstr("see `hpcai500 status result`\n"));
    EXPECT_EQ(cli::execute_in(folder_.path(), {program, "status", "result"}).exit_code, 8);
}

TEST_F(ResumedRun, HasByDefaultTheCheckpointOfAnEpochThatEndedLateEnough) {
    const std::string program = cli::environment("HPCAI500_BINARY");
    const Strings changes{"bagging.M=1", "workload.epochs=4"};
    ASSERT_EQ(begin(1, changes, "whole").exit_code, 0);
    const auto steps_per_epoch = std::ssize(steps("whole", 0)) / 4;
    // The process dies as soon as its second checkpoint has begun.
    const std::string script = fmt::format(
        "{} run --config tiny.yaml --output result --set bagging.M=1 --set workload.epochs=30000 "
        "--set run.checkpoint_seconds=0.001 --set training.batch_size=12 & "
        "until [[ $(find result/checkpoints/0 -name 'rank-0.done' 2> /dev/null | wc -l) = 2 ]]; do "
        "kill -0 $! || exit 99; sleep 0.02; done; kill -9 $!; ls result/checkpoints/0",
        program);
    const Outcome killed = cli::execute_in(folder_.path(), {"bash", "-c", script});
    ASSERT_EQ(killed.exit_code, 0) << killed.error;
    std::istringstream names(killed.out);
    for (std::string name; std::getline(names, name);) {
        EXPECT_EQ(std::stoll(name.substr(5)) % steps_per_epoch, 0) << name;
    }
    EXPECT_GT(result("whole")["work"]["groups"][0]["training_seconds"].get<double>(), 0);
    EXPECT_EQ(result("whole")["work"]["groups"][0]["checkpoint_seconds"], 0.0)
        << "no checkpoint was due";
}

TEST_F(ResumedRun, TakesOtherLimitsButNoOtherTraining) {
    ASSERT_EQ(begin(1, {"bagging.M=1"}, "whole").exit_code, 0);
    EXPECT_EQ(begin(1, {"bagging.M=1", kOneStep}, "result").exit_code, 8);
    const std::string program = cli::environment("HPCAI500_BINARY");
    const Outcome other = cli::execute_in(
        folder_.path(), {program, "resume", "result", "--set", "training.learning_rate=1"});
    EXPECT_EQ(other.exit_code, 2);
    EXPECT_THAT(other.error, HasSubstr("--set training.learning_rate=1: expected a key that does "
                                       "not change the result, one of run.checkpoint_steps, "));
    const Outcome end = cli::execute_in(
        folder_.path(), {program, "resume", "result", "--set", "run.time_limit_seconds=0", "--set",
                         "run.checkpoint_steps=1"});
    EXPECT_EQ(end.exit_code, 0) << end.error;
    expect_the_same("result", "whole", 1);
    EXPECT_GT(result("result")["work"]["groups"][0]["checkpoint_seconds"].get<double>(), 0);
    EXPECT_EQ(cli::execute_in(folder_.path(), {program, "verify", "result"}).exit_code, 0);
}

TEST_F(ResumedRun, OfSeveralRepetitionsFinishesOneAndMakesTheOthers) {
    const Strings repeated{"bagging.M=1", "run.repeat=3"};
    ASSERT_EQ(begin(1, repeated, "whole").exit_code, 0);
    const Outcome stopped = begin(1, {repeated[0], repeated[1], kOneStep}, "result");
    EXPECT_EQ(stopped.exit_code, 8) << stopped.error;
    EXPECT_EQ(last_line(stopped.out), "STOPPED step=1 resume: " + resume_command(1));
    const Outcome status = cli::run_in(folder_.path(), {"status", "result"});
    EXPECT_EQ(status.exit_code, 8);
    EXPECT_TRUE(status.out.starts_with("repetition 1 of 3\n")) << status.out;
    EXPECT_THAT(status.out, HasSubstr("\nresume: " + resume_command(1) + "\n"));
    const Outcome end =
        cli::execute_in(folder_.path(), {cli::environment("HPCAI500_BINARY"), "resume", "result",
                                         "--set", "run.time_limit_seconds=0"});
    ASSERT_EQ(end.exit_code, 0) << end.error;
    EXPECT_THAT(last_line(end.out), HasSubstr("REPETITIONS 3 of 3  FLOPS="));
    expect_verified("result");
    for (std::size_t number = 1; number <= 3; ++number) {
        const std::string run = fmt::format("/repetition_{}", number);
        expect_the_same("result" + run, "whole" + run, 1);
        const Json record = result("result" + run);
        EXPECT_EQ(record["work"]["groups"][0]["continuations"].size(), number == 1 ? 1U : 0U);
        EXPECT_EQ(record["workload"]["seed"], 2 + number);
        EXPECT_EQ(record["config"]["run"]["time_limit_seconds"], 0.001) << "as configured";
    }
}

TEST_F(ResumedRun, TrainsTheGroupsThatAreMissingAndVotesWithTheFilesOfTheOthers) {
    ASSERT_EQ(begin(2, {"bagging.out_of_bag=true", "bagging.sampler=bootstrap"}, "whole").exit_code,
              0);
    fs::copy(folder_ / "whole", folder_ / "result", fs::copy_options::recursive);
    EXPECT_EQ(resume(2, "result").exit_code, 2) << "nothing is missing";
    fs::remove(folder_ / "result/groups/1/record.json");
    const auto before = fs::last_write_time(folder_ / "result/groups/0/weights.safetensors");
    const Outcome end = resume(2, "result");
    ASSERT_EQ(end.exit_code, 0) << end.error;
    EXPECT_EQ(fs::last_write_time(folder_ / "result/groups/0/weights.safetensors"), before);
    EXPECT_TRUE(fs::exists(folder_ / "result/attempts/1/result.json"));
    expect_the_same("result", "whole", 2);
    const Json groups = result("result")["work"]["groups"];
    EXPECT_TRUE(groups[0]["continuations"].empty());
    EXPECT_EQ(groups[1]["continuations"][0]["step"], 0);
    EXPECT_EQ(result("result")["time"]["started_utc"], result("whole")["time"]["started_utc"]);
}

}  // namespace
}  // namespace hpcai::end_to_end
