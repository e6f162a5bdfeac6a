// SPDX-License-Identifier: Apache-2.0
#include <regex>
#include <sstream>

#include "child_process.hpp"

namespace hpcai::cli {
namespace {

using Words = std::vector<std::string>;

Outcome sbatch(Words options) {
    Words words{"sbatch", "--config", source("configs/smoke.yaml")};
    words.insert(words.end(), options.begin(), options.end());
    return run(words);
}

TEST(Sbatch, PrintsAScriptThatBashReads) {
    const Outcome outcome = sbatch({"--nodes", "1", "--ranks-per-node", "2", "--requeue", "2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    const TemporaryFolder folder;
    std::ofstream(folder / "job") << outcome.out;
    EXPECT_EQ(execute_in(folder.path(), {"bash", "-n", "job"}).error, "");
    EXPECT_NE(outcome.out.find("mpirun -np 2 "), std::string::npos) << outcome.out;
}

TEST(Sbatch, PassesTheOptionsOfASiteOn) {
    const TemporaryFolder folder;
    const std::string prologue = (folder / "site.sh").string();
    const Words words{"--nodes=1",    "--ranks-per-node=2", "--partition=gpu",       "--mem=0",
                      "--module=gcc", "--module=openmpi",   "--prologue=" + prologue};
    expect_refused(sbatch(words), 2, "sbatch: --prologue: expected a file with commands of bash");
    std::ofstream(prologue) << "true\n";
    const Outcome outcome = sbatch(words);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_NE(outcome.out.find("#SBATCH --mem=0\n#SBATCH --partition=gpu\n"), std::string::npos);
    EXPECT_NE(outcome.out.find("module load gcc || exit 2\nmodule load openmpi || exit 2\nsource " +
                               prologue + " || exit 2\n"),
              std::string::npos)
        << outcome.out;
    for (const std::string& account :
         {std::string("a b"), std::string("a\n#SBATCH --x"), std::string(100'000, 'a') + "`"}) {
        expect_refused(sbatch({"--nodes", "1", "--ranks-per-node", "2", "--account", account}), 2,
                       "sbatch: --account: expected letters, digits and");
    }
}

TEST(Sbatch, WritesTheSameIntoAFile) {
    const TemporaryFolder folder;
    const Words words{"sbatch",  "--config", source("configs/smoke.yaml"),
                      "--nodes", "1",        "--ranks-per-node",
                      "2",       "--output", "a.sbatch"};
    const Outcome outcome = run_in(folder.path(), words);
    EXPECT_EQ(outcome.out, "wrote a.sbatch; submit it with\n  sbatch a.sbatch\n") << outcome.error;
    EXPECT_NE(text_of(folder / "a.sbatch").find("mpirun -np 2 "), std::string::npos);
    Words blank = words;
    blank.back() = "my job.sbatch";
    EXPECT_TRUE(run_in(folder.path(), blank).out.ends_with("\n  sbatch 'my job.sbatch'\n"));
}

TEST(Sbatch, OverwritesItsOwnScriptsAlone) {
    const TemporaryFolder folder;
    const std::string config = text_of(source("configs/smoke.yaml"));
    std::ofstream(folder / "a.yaml") << config;
    const auto write_to = [&](const std::string& output) {
        return run_in(folder.path(), {"sbatch", "--config", "a.yaml", "--nodes", "1",
                                      "--ranks-per-node", "2", "--output", output});
    };
    expect_refused(write_to("a.yaml"), 2, "sbatch: --output: expected a new file or an earlier");
    EXPECT_EQ(text_of(folder / "a.yaml"), config);
    std::filesystem::create_symlink("nowhere", folder / "link");
    for (const auto& [name, text] : {std::pair{"empty", ""},
                                     {"short", "#!/bin/bash\n"},
                                     {"job", "#!/bin/bash\n#SBATCH --nodes=1\n"}}) {
        std::ofstream(folder / name) << text;
        expect_refused(write_to(name), 2, std::string("got '") + name + "'");
        EXPECT_EQ(text_of(folder / name), text);
    }
    expect_refused(write_to("link"), 2, "got 'link'");
    expect_refused(write_to("."), 2, "got the folder '.'");
    EXPECT_EQ(write_to("own").exit_code, 0);
    std::ofstream(folder / "own", std::ios::app) << "an edit\n";
    EXPECT_EQ(write_to("own").exit_code, 0);
    EXPECT_EQ(text_of(folder / "own").find("an edit"), std::string::npos);
}

TEST(Sbatch, RejectsAFileThatIsCalledAsStandardOutputIs) {
    const TemporaryFolder folder;
    expect_refused(
        run_in(folder.path(), {"sbatch", "--config", source("configs/smoke.yaml"), "--nodes", "1",
                               "--ranks-per-node", "2", "--output", "-"}),
        2, "without --output the script is printed to standard output");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Sbatch, RejectsRanksThatDoNotFit) {
    expect_refused(sbatch({"--nodes", "3", "--ranks-per-node", "2"}), 3,
                   "bagging.M=2 x bagging.P_degree=1 needs 2 ranks (eq. 5), got 6; choose");
    expect_refused(sbatch({"--nodes", "1", "--ranks-per-node", "2", "--array", "M=1,2,4"}), 3,
                   "bagging.M=4 x bagging.P_degree=1 needs 4 ranks (eq. 5), got 2");
}

TEST(Sbatch, GivesEachCombinationOfAnArrayTheRanksItNeeds) {
    const Outcome outcome = sbatch(
        {"--nodes", "2", "--ranks-per-node", "4", "--array", "M=1,4", "--array", "P_degree=1,2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    for (const char* line :
         {"#SBATCH --array=0-3\n",
          "    0) ranks=1 task=(--set bagging.M=1 --set bagging.P_degree=1) ;;\n",
          "    3) ranks=8 task=(--set bagging.M=4 --set bagging.P_degree=2) ;;\n"}) {
        EXPECT_NE(outcome.out.find(line), std::string::npos) << line << outcome.out;
    }
}

/// Makes a script for `ranks` on a node with `gpus`, at run.level hardware, with further settings.
Outcome with_gpus(const std::string& ranks, const std::string& gpus, const Words& settings) {
    Words options{"--nodes", "1", "--ranks-per-node", ranks, "--gpus-per-node", gpus};
    for (const std::string& setting : settings) {
        options.insert(options.end(), {"--set", setting});
    }
    return sbatch(options);
}

TEST(Sbatch, RejectsRanksThatWouldShareGpusWhereTheyMustNot) {
    expect_refused(
        with_gpus("4", "2", {"bagging.P_degree=2", "run.level=hardware", "device.kind=auto"}), 3,
        "sbatch: 4 ranks on each node would share 2 GPUs: at a run.level other than "
        "custom every rank needs its own GPU; expected --ranks-per-node 2 at most");
    for (const char* allowed : {"run.level=custom", "device.kind=cpu"}) {
        const std::string other = std::string_view(allowed).starts_with("run.")
                                      ? "device.kind=auto"
                                      : "run.level=hardware";
        EXPECT_EQ(with_gpus("4", "2", {"bagging.P_degree=2", allowed, other}).exit_code, 0)
            << allowed;
    }
    const Words tasks{"--nodes", "1",     "--ranks-per-node",   "4",     "--gpus-per-node",
                      "2",       "--set", "run.level=hardware", "--set", "device.kind=auto",
                      "--array"};
    Words few = tasks;
    few.emplace_back("M=1,2");
    EXPECT_EQ(sbatch(few).exit_code, 0) << "2 of the ranks at most";
    few.back() = "M=1,4";
    expect_refused(sbatch(few), 3, "4 ranks on each node would share 2 GPUs");
}

TEST(Sbatch, WarnsOfGpusThatNoRankCanUse) {
    const Outcome outcome = with_gpus("2", "8", {"device.kind=auto"});
    EXPECT_EQ(outcome.exit_code, 0);
    EXPECT_EQ(outcome.error,
              "sbatch: warning: 6 of the 8 GPUs of each node would be idle, because it has 2 "
              "ranks and device.kind is auto\n");
    EXPECT_TRUE(outcome.out.starts_with("#!/bin/bash\n"));
    EXPECT_EQ(with_gpus("2", "2", {"device.kind=auto"}).error, "");
}

TEST(Sbatch, NotesMissingDataAndAnIncompleteSubmission) {
    const Outcome outcome =
        run({"sbatch", "--config", source("configs/mini_image_classification.yaml"), "--set",
             "data.path=no/such", "--set", "data.validation_path=.", "--nodes", "2"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.error;
    EXPECT_TRUE(outcome.error.starts_with(
        "sbatch: note: 'no/such' does not exist on this machine\n"
        "sbatch: note: the result is not rankable: the section submission lacks\n"))
        << outcome.error;
    EXPECT_EQ(sbatch({"--nodes", "2"}).error, "") << "data in memory, level custom";
}

TEST(Sbatch, RejectsAnArrayWithTheSameTaskTwice) {
    const Words four{"--nodes", "1", "--ranks-per-node", "4"};
    const auto refusal = [&](Words array) {
        array.insert(array.end(), four.begin(), four.end());
        return sbatch(array);
    };
    expect_refused(refusal({"--array", "M=1,2,1"}), 2,
                   "sbatch: --array: expected different tasks, got 'bagging.M=1', which is the "
                   "same as task 0");
    expect_refused(refusal({"--array", "M=1", "--array", "training.learning_rate=0.1,0.10"}), 2,
                   "got 'bagging.M=1 training.learning_rate=0.10', which is");
}

TEST(Sbatch, RejectsWhatSlurmWouldNotTake) {
    expect_refused(sbatch({"--nodes", "0"}), 2, "sbatch: --nodes: expected an integer");
    expect_refused(sbatch({"--nodes", "1", "--time", "1h"}), 2, "sbatch: --time: expected");
    expect_refused(sbatch({"--nodes", "1", "--time", "2"}), 2, "more than 2 minutes");
    expect_refused(sbatch({"--nodes", "1", "--launcher", "aprun"}), 2, "mpirun or srun");
    expect_refused(sbatch({"--nodes", "1", "--array", "M"}), 2, "sbatch: --array: expected");
    expect_refused(sbatch({"--nodes", "1", "--array", "M=1,"}), 2, "is empty");
    expect_refused(sbatch({"--nodes", "2", "--results", "a\nb"}), 2, "control characters");
    for (const char* path : {"--results=-x", "--container=-x"})
        expect_refused(sbatch({"--nodes", "2", path}), 2, "such as './-x', got '-x'");
    expect_refused(sbatch({"--nodes", "1", "--scheduler", "lsf"}), 2, "slurm, pbs or flux");
    EXPECT_EQ(sbatch({"--nodes", "2", "--requeue", "1", "--set", "run.repeat=3"}).exit_code, 0);
    expect_refused(run({"sbatch", "--config", source("configs/smoke.yaml")}), 2,
                   "sbatch: --nodes is required");
}

TEST(Sbatch, BindsTheDataOfTheConfigurationInAContainer) {
    const Outcome outcome =
        sbatch({"--nodes", "2", "--container", "a.sif", "--set", "data.path=/data/train", "--set",
                "data.kind=image_folder", "--set", "data.validation_path=val/../../other", "--set",
                "workload.classes=4", "--results", "/results", "--set",
                "training.initial_weights=/weights/resnet.safetensors"});
    EXPECT_TRUE(outcome.error.ends_with("note: 'a.sif' does not exist on this machine\n"));
    const auto parent = std::filesystem::canonical(std::filesystem::temp_directory_path() / "..");
    const std::string binds = "--bind /data/train --bind " + (parent / "other").string() +
                              " --bind /results --bind /weights --bind ";
    EXPECT_TRUE(outcome.out.find("hpcai500=(apptainer exec --bind \"$PWD\" " + binds +
                                 source("configs/smoke.yaml") + " a.sif ") != std::string::npos)
        << outcome.out << outcome.error;
}

/// Runs a batch script with stand-ins for all programs that it calls. The stand-in for the launcher
/// writes its arguments to `launched`.
class BatchScriptRun : public testing::Test {
protected:
    BatchScriptRun() {
        std::filesystem::create_directory(folder_ / "bin");
        for (const char* launcher : {"mpirun", "srun"}) {
            stand_in(launcher, "echo \"$*\" >launched; eval \"${LAUNCHER:-}\"");
        }
        stand_in("qsub", "echo \"$HPCAI500_RESTARTS $HPCAI500_RESULTS $*\" >>requeued");
        stand_in("apptainer",
                 "echo \"$*\" >contained; while [[ $1 != *.sif ]]; do shift; done; shift; "
                 "exec \"$@\"");
        // An argument of each command: getattr, submit, job attach, job kill, --parent batch.
        stand_in(
            "flux",
            "case $1 in getattr) echo \xc6\x92"
            "A7 ;; submit) echo \"$*\" >launched; echo 42 ;;\n"
            "--parent) echo \"$HPCAI500_RESTARTS $HPCAI500_RESULTS $*\" >>requeued ;;\n"
            "job) if [[ $2 = kill ]]; then echo \"$*\" >killed; else eval \"${LAUNCHER:-}\"; fi "
            ";;\nesac");
        stand_in("lscpu", "printf '# NODE\\n0\\n0\\n1\\n1\\n'");
        stand_in("scontrol", "echo \"$*\" >>requeued");
        stand_in("sleep", ":");
        stand_in("program", "exit $STATUS");
    }

    void stand_in(const std::string& name, const std::string& commands) {
        const auto path = folder_ / "bin" / name;
        std::ofstream(path) << "#!/bin/bash\n" << commands << '\n';
        std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    }

    Outcome start(const Words& options, const std::string& status, const std::string& launcher) {
        Words words{"--requeue", "2", "--nodes", "1", "--time", "1:00:00"};
        words.insert(words.end(), options.begin(), options.end());
        std::ofstream(folder_ / "job") << sbatch(words).out;
        return execute_in(
            folder_.path(), {"bash", "job"},
            {"PATH=" + (folder_ / "bin").string() + ":" + environment("PATH"), "HPCAI500=program",
             "SLURM_JOB_ID=7", "PBS_JOBID=7.server", "PBS_NODEFILE=nodes", "PBS_O_WORKDIR=.",
             "STATUS=" + status, "LAUNCHER=" + launcher});
    }

    TemporaryFolder folder_;
};

constexpr const char* kStops =
    "mkdir -p results/smoke-7/groups/0; echo >results/smoke-7/groups/0/progress.json";

TEST_F(BatchScriptRun, BindsToNumaNodesWhereRanksDivideEvenly) {
    const Words fours{"--ranks-per-node", "4", "--set", "bagging.P_degree=2"};
    start(fours, "0", "");
    EXPECT_NE(text_of(folder_ / "launched").find("-np 4 --map-by ppr:2:numa --bind-to numa "),
              std::string::npos);
    Words by_srun = fours;
    by_srun.insert(by_srun.end(), {"--launcher", "srun"});
    start(by_srun, "0", "");
    EXPECT_NE(text_of(folder_ / "launched").find("-per-node=4 --cpu-bind=map_ldom:0,0,1,1 "),
              std::string::npos);
    stand_in("lscpu", "printf '# NODE\\n0\\n1\\n2\\n'");
    start(fours, "0", "");
    EXPECT_NE(text_of(folder_ / "launched").find("--map-by ppr:4:node --bind-to none "),
              std::string::npos);
}

TEST_F(BatchScriptRun, RequeuesAJobThatHasStopped) {
    EXPECT_EQ(start({"--ranks-per-node", "2"}, "8", kStops).exit_code, 8);
    EXPECT_EQ(text_of(folder_ / "requeued"), "requeue 7\n");
}

const Words kPbs{"--scheduler", "pbs", "--ranks-per-node", "2", "--cpus-per-rank", "1"};
const Words kFlux{"--scheduler", "flux", "--ranks-per-node", "2"};

/// kStops in the directory of a job of Flux.
const std::string kStopsInFlux = std::regex_replace(kStops, std::regex("smoke-7"), "smoke-A7");

TEST_F(BatchScriptRun, SubmitsItselfUnderPbsAndFlux) {
    EXPECT_EQ(start(kPbs, "8", kStops).exit_code, 8);
    EXPECT_TRUE(text_of(folder_ / "launched").starts_with("--hostfile nodes -np 2 "));
    EXPECT_EQ(text_of(folder_ / "requeued"),
              "1 results/smoke-7 -v HPCAI500,HPCAI500_RESULTS,HPCAI500_RESTARTS job\n");
    std::filesystem::remove(folder_ / "requeued");
    const Outcome outcome = start(kFlux, "8", kStopsInFlux);
    EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
    EXPECT_NE(text_of(folder_ / "launched").find("--nodes=1 --ntasks=2 program run --config "),
              std::string::npos);
    EXPECT_EQ(text_of(folder_ / "requeued"), "1 results/smoke-A7 --parent batch job\n");
}

TEST_F(BatchScriptRun, StopsItsRanksBeforeTheTimeLimitOfPbsAndFlux) {
    const std::string prologue = (folder_ / "prologue.sh").string();
    std::ofstream(prologue) << "trap '[[ -e ready ]] && SECONDS=3481' DEBUG\n";
    const auto start_with = [&](Words words, const std::string& launcher) {
        words.insert(words.end(), {"--prologue", prologue});
        const std::string waits =
            "; touch ready; for ((i = 0; i < 500; ++i)); do "
            "[[ ! -e killed ]] || break; read -t 0.02 <> <(:); done";
        const Outcome outcome = start(words, "8", launcher + waits);
        EXPECT_EQ(outcome.exit_code, 8) << outcome.error;
        std::filesystem::remove(folder_ / "ready");
    };
    start_with(kPbs, std::string(kStops) + "; trap 'touch signalled; exit 1' USR1");
    EXPECT_TRUE(std::filesystem::exists(folder_ / "signalled"));
    start_with(kFlux, kStopsInFlux);
    EXPECT_EQ(text_of(folder_ / "killed"), "job kill --signal=USR1 42\n");
}

TEST_F(BatchScriptRun, StartsEveryRankInItsContainer) {
    Words words = kPbs;
    words.insert(words.end(), {"--container", "an image.sif"});
    EXPECT_EQ(start(words, "0", "").exit_code, 0);
    EXPECT_NE(text_of(folder_ / "launched").find(" an image.sif program run --config "),
              std::string::npos);
    EXPECT_TRUE(text_of(folder_ / "contained").ends_with(" program status results/smoke-7\n"));
}

TEST_F(BatchScriptRun, DoesNotRequeueWhatAnEarlierStartHasStopped) {
    const Words options{"--ranks-per-node", "2", "--launcher", "srun"};
    start(options, "8", kStops);
    std::filesystem::remove(folder_ / "requeued");
    const Outcome again = start(options, "8", "exit 3");
    EXPECT_EQ(again.exit_code, 3) << again.error;
    EXPECT_NE(again.error.find("this launch has written no results"), std::string::npos)
        << again.error;
    EXPECT_EQ(start(options, "8", "").exit_code, 1) << "mpirun returns 0 in any case";
    EXPECT_FALSE(std::filesystem::exists(folder_ / "requeued"));
}

TEST_F(BatchScriptRun, ExitsAsStatusDoesIfTheRunMadeProgress) {
    const Words options{"--ranks-per-node", "2", "--launcher", "srun"};
    EXPECT_EQ(start(options, "7", std::string(kStops) + "; exit 1").exit_code, 7);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "requeued"));
}

/// Returns the command in the second line, "# Made by: hpcai500 sbatch ...".
std::string command_of(const std::string& script) {
    std::istringstream lines(script);
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    constexpr std::string_view kStart = "# Made by: hpcai500 ";
    EXPECT_TRUE(line.starts_with(kStart)) << line;
    return line.substr(std::min(line.size(), kStart.size()));
}

Outcome printed_by(const std::string& options) {
    return execute_in(source(""), {"bash", "-c", "\"$HPCAI500_BINARY\" " + options});
}

TEST(SlurmTemplates, AreWhatTheirCommandPrints) {
    for (const char* name : {"cpu_only.sbatch", "cpu_only.pbs", "cpu_only.flux"}) {
        const std::string path = source(std::string("scripts/slurm/") + name);
        const Outcome outcome = printed_by(command_of(text_of(path)));
        EXPECT_EQ(outcome.out, text_of(path)) << outcome.error;
        EXPECT_EQ(execute_in(source(""), {"bash", "-n", path}).exit_code, 0) << name;
    }
}

TEST(SlurmTemplates, OfTheDocumentAreScriptsForTheirNumbersOfNodesAndGpus) {
    std::istringstream document(text_of(source("docs/SLURM.md")));
    int templates = 0;
    for (std::string line; std::getline(document, line);) {
        const std::size_t begin = line.find("| `--config configs/");
        if (begin == std::string::npos) continue;
        const std::string options = line.substr(begin + 3, line.rfind('`') - begin - 3);
        for (const char* launcher : {"mpirun", "srun"}) {
            const Outcome outcome = printed_by("sbatch " + options + " --launcher " + launcher);
            EXPECT_EQ(outcome.exit_code, 0) << options << outcome.error;
            for (const char* option : {"--nodes", "--gpus-per-node"}) {
                const std::string name = std::string(option) + " ";
                const std::size_t at = options.find(name) + name.size();
                const std::string number = options.substr(at, options.find(' ', at) - at);
                EXPECT_NE(outcome.out.find("#SBATCH " + std::string(option) + "=" + number + "\n"),
                          std::string::npos)
                    << outcome.out;
            }
            EXPECT_NE(outcome.out.find(launcher), std::string::npos) << outcome.out;
            const TemporaryFolder folder;
            std::ofstream(folder / "job") << outcome.out;
            EXPECT_EQ(execute_in(folder.path(), {"bash", "-n", "job"}).exit_code, 0) << options;
            ++templates;
        }
    }
    EXPECT_EQ(templates, 6);
}

}  // namespace
}  // namespace hpcai::cli
