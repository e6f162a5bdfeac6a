// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/slurm/batch_script.hpp>

namespace hpcai::slurm {
namespace {

BatchJob example() {
    BatchJob job;
    job.command_line = "hpcai500 sbatch --config a.yaml --nodes 4";
    job.name = "photographs";
    job.configs = {"a.yaml"};
    job.nodes = 4;
    job.ranks_per_node = 8;
    return job;
}

bool has(const std::string& script, const std::string& part) {
    return script.find(part) != std::string::npos;
}

TEST(TimeLimit, IsReadInAllOfSlurmsForms) {
    EXPECT_EQ(time_limit_seconds("90"), 90 * 60);
    EXPECT_EQ(time_limit_seconds("90:30"), 90 * 60 + 30);
    EXPECT_EQ(time_limit_seconds("12:00:01"), 12 * 3600 + 1);
    EXPECT_EQ(time_limit_seconds("2-12"), (48 + 12) * 3600);
    EXPECT_EQ(time_limit_seconds("1-00:05"), 86400 + 300);
    EXPECT_EQ(time_limit_seconds("1-01:02:03"), 86400 + 3723);
    EXPECT_EQ(time_limit_seconds("25:61:61"), 25 * 3600 + 61 * 60 + 61)
        << "Slurm takes more than 59, too";
}

TEST(TimeLimit, IsNothingForOtherTexts) {
    for (const char* text : {"", "-", "1h", "1:2:3:4", "1-", "-5", ":5", "5:", "1.5", " 5", "1-2-3",
                             "99999999999", "infinite", "5\n#SBATCH --uid=0", "9999-00"}) {
        EXPECT_EQ(time_limit_seconds(text), std::nullopt) << text;
    }
}

TEST(BatchScript, AsksForWholeNodesAndTheirRanks) {
    const std::string script = batch_script(example());
    EXPECT_TRUE(
        script.starts_with("#!/bin/bash\n# Made by: hpcai500 sbatch --config a.yaml --nodes 4\n"));
    EXPECT_TRUE(has(script, "#SBATCH --nodes=4\n#SBATCH --ntasks-per-node=8\n"));
    EXPECT_TRUE(has(script, "\n#SBATCH --exclusive\n"));
    EXPECT_TRUE(has(script, "mpirun -np 32 \"${place[@]}\" \\\n    --enable-recovery --mca "));
    EXPECT_TRUE(has(script, "\nplace=(--map-by ppr:8:node --bind-to none)\n"));
    EXPECT_FALSE(has(script, "gpu"));
    EXPECT_FALSE(has(script, "--array"));
    EXPECT_FALSE(has(script, "--time"));
}

TEST(BatchScript, LetsEveryRankSeeAllGpusOfItsNode) {
    BatchJob job = example();
    job.gpus_per_node = 8;
    EXPECT_TRUE(has(batch_script(job), "#SBATCH --gpus-per-node=8\n"));
    EXPECT_TRUE(has(batch_script(job), "\n#SBATCH --gpu-bind=none\n"));
}

TEST(BatchScript, SharesNodesIfItStatesHowManyCoresItNeeds) {
    BatchJob job = example();
    job.cpus_per_rank = 6;
    job.launcher = Launcher::srun;
    const std::string script = batch_script(job);
    EXPECT_TRUE(has(script, "#SBATCH --cpus-per-task=6\n"));
    EXPECT_FALSE(has(script, "--exclusive"));
    EXPECT_TRUE(has(script, "place=(--ntasks-per-node=8 --cpus-per-task=6)\n"))
        << "Slurm knows which cores of the node are this job's";
    EXPECT_TRUE(has(script, "srun --mpi=pmix --wait=0 --ntasks=32 \"${place[@]}\""));
    EXPECT_FALSE(has(script, "numa"));
    EXPECT_FALSE(has(script, "mpirun"));
}

TEST(BatchScript, RequeuesOnlyWhereItMayAndOnlySoOften) {
    EXPECT_FALSE(has(batch_script(example()), "scontrol"));
    EXPECT_TRUE(has(batch_script(example()), "#SBATCH --no-requeue\n"));
    BatchJob job = example();
    job.requeues = 3;
    EXPECT_TRUE(has(batch_script(job), "code == 8 && ${SLURM_RESTART_COUNT:-0} < 3"));
    EXPECT_TRUE(has(batch_script(job), "#SBATCH --requeue\n"));
}

TEST(BatchScript, GivesEachTaskOfAnArrayItsSettingsAndRanks) {
    BatchJob job = example();
    job.array = {{{"bagging.M=1", "bagging.P_degree=8"}, 8}, {{"bagging.M=2"}, 32}};
    const std::string script = batch_script(job);
    EXPECT_TRUE(has(script, "#SBATCH --array=0-1\n"));
    EXPECT_TRUE(has(script,
                    "    0) ranks=8 task=(--set bagging.M=1 --set bagging.P_degree=8) ;;\n"
                    "    1) ranks=32 task=(--set bagging.M=2) ;;\n"));
    EXPECT_TRUE(has(script, "--config a.yaml \"${task[@]}\" --output"));
    EXPECT_TRUE(has(script, "mpirun -np \"$ranks\""));
}

TEST(BatchScript, OfAnArrayTouchesNoOtherTask) {
    BatchJob job = example();
    job.launcher = Launcher::srun;
    job.requeues = 2;
    EXPECT_TRUE(has(batch_script(job), "scontrol requeue \"$SLURM_JOB_ID\""));
    job.array = {{{"bagging.M=1"}, 8}, {{"bagging.M=2"}, 12}};
    const std::string script = batch_script(job);
    const std::string task = "\"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"";
    EXPECT_FALSE(has(script, "scancel"));
    EXPECT_TRUE(has(script, "scontrol requeue " + task));
    EXPECT_TRUE(has(script, "--ntasks=\"$ranks\" --nodes=$(((ranks + 7) / 8)) \"${place[@]}\""))
        << "the number of nodes with which eq. 5 was checked";
}

TEST(BatchScript, LooksForTheProgramBeforeAnythingIsLaunched) {
    const std::string script = batch_script(example());
    EXPECT_LT(script.find("if ! command -v \"${hpcai500[0]}\" >/dev/null; then\n"),
              script.find("mpirun -np"));
}

TEST(BatchScript, EndsALauncherAfterTheEndOfThisRunOnly) {
    const std::string script = batch_script(example());
    EXPECT_LT(script.find("summary=$(stat"), script.find("mpirun -np"));
    EXPECT_TRUE(has(script, "[[ -n $now && $now != \"$summary\" ]] && ((checks-- <= 0))"));
    EXPECT_TRUE(
        has(script, "((signalled)) && [[ $(output_state) != \"$initial_state\" ]] || return 1\n"))
        << "what status says may be from an earlier launch";
}

TEST(BatchScript, QuotesWhatAShellWouldTakeForItsOwn) {
    BatchJob job = example();
    job.configs = {"my $HOME.yaml"};
    job.settings = {"run.name=a;b"};
    job.name = "a;b c";
    job.results = "/my results";
    const std::string script = batch_script(job);
    EXPECT_TRUE(has(script, "--config 'my $HOME.yaml' --set 'run.name=a;b' --output"));
    EXPECT_TRUE(has(script, "#SBATCH --job-name=a-b-c\n"));
    EXPECT_TRUE(has(script, "results='/my results/a-b-c'-$SLURM_JOB_ID\n"));
}

TEST(BatchScript, HasTheOptionsOfASiteOnlyIfGiven) {
    const std::string plain = batch_script(example());
    for (const char* words : {"--account", "module load", "source "})
        EXPECT_FALSE(has(plain, words));
    BatchJob job = example();
    job.site_options = {{"account", "physics"}, {"constraint", "[a|b]&gpu"}};
    job.modules = {"openmpi/4.1", "my module"};
    job.prologue = "site $HOME.sh";
    const std::string script = batch_script(job);
    EXPECT_TRUE(has(script, "#SBATCH --account=physics\n#SBATCH --constraint=[a|b]&gpu\n"));
    EXPECT_TRUE(has(script,
                    "module load openmpi/4.1 || exit 2\nmodule load 'my module' || exit 2\n"
                    "source './site $HOME.sh' || exit 2\n"));
    EXPECT_LT(script.find("source "), script.find("hpcai500=(\"${HPCAI500"))
        << "a prologue may set HPCAI500";
    job.prologue = "/etc/site.sh";
    EXPECT_TRUE(has(batch_script(job), "source /etc/site.sh || exit 2\n"));
}

TEST(BatchScript, RejectsSiteOptionsThatSlurmOrAShellWouldInterpret) {
    for (const char* value : {"", "a b", "a#b", "a\n#SBATCH --uid=0", "$(id)", "'a'", "a\\b"}) {
        BatchJob job = example();
        job.site_options = {{"qos", value}};
        EXPECT_THROW(batch_script(job), Error) << value;
    }
    BatchJob job = example();
    job.modules = {"--force"};
    EXPECT_THROW(batch_script(job), Error);
}

BatchJob example_of(Scheduler scheduler) {
    BatchJob job = example();
    job.scheduler = scheduler;
    if (scheduler == Scheduler::pbs) job.cpus_per_rank = 6;
    job.gpus_per_node = 8;
    job.time = "12:00:00";
    job.time_seconds = 43200;
    return job;
}

TEST(BatchScript, AsksPbsForChunksOfOneNode) {
    BatchJob job = example_of(Scheduler::pbs);
    job.site_options = {{"account", "physics"},
                        {"constraint", "model=h100"},
                        {"mem", "500gb"},
                        {"partition", "gpu@server"}};
    const std::string script = batch_script(job);
    EXPECT_TRUE(has(script,
                    "#PBS -N photographs\n"
                    "#PBS -l select=4:ncpus=48:mpiprocs=8:ngpus=8:model=h100:mem=500gb\n"
                    "#PBS -l place=scatter:excl\n#PBS -A physics\n#PBS -q gpu@server\n"
                    "#PBS -l walltime=43200\n#PBS -r n\n#PBS -j oe\ncd \"$PBS_O_WORKDIR\""))
        << script;
    EXPECT_TRUE(has(script, "mpirun --hostfile \"$PBS_NODEFILE\" -np 32 \"${place[@]}\" \\\n"));
    EXPECT_TRUE(has(script, "((signalled || SECONDS < 43080)) || kill -USR1 $$\n"))
        << "PBS sends no signal before the limit";
    EXPECT_FALSE(has(script, "SBATCH"));
    job.array = {{{"bagging.M=1"}, 8}, {{"bagging.M=2"}, 32}};
    EXPECT_TRUE(has(batch_script(job), "#PBS -J 0-1\n"));
    EXPECT_TRUE(has(batch_script(job), "case $PBS_ARRAY_INDEX in\n"));
}

TEST(BatchScript, AsksFluxForWholeNodesAndSubmitsItsRanks) {
    BatchJob job = example_of(Scheduler::flux);
    job.site_options = {{"account", "physics"}, {"constraint", "h100"}, {"partition", "batch"}};
    const std::string script = batch_script(job);
    EXPECT_TRUE(has(script,
                    "#flux: --job-name=photographs\n#flux: --nodes=4\n#flux: --exclusive\n"
                    "#flux: --setattr=bank=physics\n#flux: --requires=h100\n"
                    "#flux: --queue=batch\n#flux: --time-limit=43200s\nset -u\n"))
        << script;
    EXPECT_TRUE(has(script, "--exclusive --nodes=4 --ntasks=32 \\\n    \"${hpcai500[@]}\""));
    EXPECT_TRUE(has(script, "flux job kill --signal=USR1 \"$job\""));
    EXPECT_FALSE(has(script, "mpirun"));
}

TEST(BatchScript, SubmitsItselfWhereAUserMayNotRequeue) {
    for (const auto& [scheduler, command] :
         {std::pair{Scheduler::pbs, "qsub -v HPCAI500,HPCAI500_RESULTS,HPCAI500_RESTARTS"},
          {Scheduler::flux, "flux --parent batch"}}) {
        BatchJob job = example_of(scheduler);
        EXPECT_FALSE(has(batch_script(job), command));
        job.requeues = 3;
        const std::string script = batch_script(job);
        EXPECT_TRUE(has(script, "code == 8 && ${HPCAI500_RESTARTS:-0} < 3"));
        EXPECT_TRUE(has(script, std::string("    ") + command + " \"$0\"\n"));
        EXPECT_TRUE(has(script, "    export HPCAI500=${HPCAI500:-hpcai500} "))
            << "qsub rejects the name of a variable that is not set";
        EXPECT_TRUE(has(script, "results=${HPCAI500_RESULTS:-$results}\n"));
    }
}

TEST(BatchScript, RefusesWhatItsSchedulerDoesNotHave) {
    const auto refused = [](const BatchJob& job, const std::string& message) {
        try {
            batch_script(job);
        } catch (const Error& error) {
            return error.code() == ExitCode::usage && has(error.what(), "sbatch: --" + message);
        }
        return false;
    };
    BatchJob job = example_of(Scheduler::pbs);
    job.site_options = {{"qos", "high"}};
    EXPECT_TRUE(refused(job, "qos: not supported with --scheduler pbs"));
    job = example_of(Scheduler::pbs);
    job.launcher = Launcher::srun;
    EXPECT_TRUE(refused(job, "launcher srun: not supported with --scheduler pbs"));
    job = example_of(Scheduler::pbs);
    job.array = {{{"bagging.M=1"}, 8}};
    EXPECT_TRUE(refused(job, "array with one value: not supported"));
    job.array.push_back({{"bagging.M=2"}, 8});
    job.requeues = 1;
    EXPECT_TRUE(refused(job, "array with --requeue: not supported"));
    job.requeues = 0;
    EXPECT_FALSE(refused(job, ""));
    job.cpus_per_rank = 0;
    EXPECT_TRUE(refused(job, "cpus-per-rank: required with --scheduler pbs"));
    job.array.clear();
    job.requeues = 1;
    job.time_seconds = 0;
    EXPECT_TRUE(refused(job, "cpus-per-rank and --time (because of --requeue): required"));
    for (const Scheduler scheduler : {Scheduler::pbs, Scheduler::flux}) {
        job = example_of(scheduler);
        job.requeues = 1;
        EXPECT_FALSE(refused(job, ""));
        job.time = "";
        job.time_seconds = 0;
        EXPECT_TRUE(refused(job, "time (because of --requeue): required with --scheduler"));
    }
    job = example_of(Scheduler::flux);
    job.site_options = {{"mem", "1"}};
    EXPECT_TRUE(refused(job, "mem: not supported with --scheduler flux"));
    job = example_of(Scheduler::flux);
    job.cpus_per_rank = 2;
    EXPECT_TRUE(refused(job, "cpus-per-rank: not supported with --scheduler flux"));
    job = example_of(Scheduler::flux);
    job.array = {{{"bagging.M=1"}, 8}, {{"bagging.M=2"}, 8}};
    EXPECT_TRUE(refused(job, "array: not supported with --scheduler flux"));
}

TEST(BatchScript, RunsTheProgramInAContainerThatHasItsData) {
    for (const Scheduler scheduler : {Scheduler::slurm, Scheduler::pbs, Scheduler::flux}) {
        BatchJob job = example_of(scheduler);
        EXPECT_FALSE(has(batch_script(job), "apptainer"));
        job.container = "my $image.sif";
        job.binds = {"/data/a b", "relative", ""};
        job.results = "/my results";
        const std::string script = batch_script(job);
        EXPECT_TRUE(has(script,
                        "mkdir -p '/my results' || exit 2\nset -u\n"
                        "hpcai500=(apptainer exec --nv --bind \"$PWD\" --bind '/data/a b' "
                        "'my $image.sif' \"${HPCAI500:-hpcai500}\")\n"))
            << script;
        job.gpus_per_node = 0;
        EXPECT_FALSE(has(batch_script(job), "--nv"));
        job.binds = {"/a:b"};
        EXPECT_THROW(batch_script(job), Error) << "a ':' separates what Apptainer binds";
    }
}

TEST(BatchScript, RejectsWhatWouldMakeALineOfItsOwn) {
    const auto refused = [](const BatchJob& job) {
        try {
            batch_script(job);
        } catch (const Error& error) {
            return error.code() == ExitCode::usage && has(error.what(), "\\n#SBATCH");
        }
        return false;
    };
    const std::string evil = "a\n#SBATCH --uid=0";
    BatchJob job = example();
    job.configs = {evil};
    EXPECT_TRUE(refused(job));
    job = example();
    job.settings = {evil};
    EXPECT_TRUE(refused(job));
    job = example();
    job.array = {{{evil}, 1}};
    EXPECT_TRUE(refused(job));
    job = example();
    job.results = evil;
    EXPECT_TRUE(refused(job));
    job = example();
    job.modules = {evil};
    EXPECT_TRUE(refused(job));
    job = example();
    job.prologue = evil;
    EXPECT_TRUE(refused(job));
    job = example();
    job.site_options = {{"mem", evil}};
    EXPECT_TRUE(refused(job));
    job = example();
    job.container = evil;
    EXPECT_TRUE(refused(job));
    job.container = "a.sif";
    job.binds = {"/" + evil};
    EXPECT_TRUE(refused(job));
    job = example();
    job.command_line = evil;
    EXPECT_FALSE(has(batch_script(job), evil));
}

}  // namespace
}  // namespace hpcai::slurm
