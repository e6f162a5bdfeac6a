// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/launch.hpp>

namespace hpcai::comm {
namespace {

EnvironmentLookup environment_of(std::map<std::string, std::string> variables) {
    return [variables = std::move(variables)](const char* name) -> const char* {
        const auto found = variables.find(name);
        return found == variables.end() ? nullptr : found->second.c_str();
    };
}

std::string rejection(std::optional<int> world_size, std::map<std::string, std::string> variables) {
    try {
        check_launch(world_size, environment_of(std::move(variables)),
                     "hpcai500 run --config a.yaml");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::launch);
        return error.what();
    }
    return "";
}

TEST(Launch, AloneUnderSlurmIsRejectedBeforeAndAfterMpiInit) {
    for (const std::optional<int> world_size : {std::optional<int>(), std::optional<int>(1)}) {
        const std::string message = rejection(world_size, {{"SLURM_NTASKS", "4"}});
        EXPECT_NE(message.find("SLURM_NTASKS=4"), std::string::npos) << message;
        EXPECT_NE(message.find("mpirun -np 4 hpcai500 run --config a.yaml"), std::string::npos);
        EXPECT_NE(message.find("srun --mpi=pmix -n 4 hpcai500 run"), std::string::npos);
    }
}

TEST(Launch, AnotherMpisLauncherIsNoticedOnlyAfterMpiInit) {
    for (const char* rank : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK"}) {
        EXPECT_EQ(rejection(std::nullopt, {{"SLURM_NTASKS", "2"}, {rank, "0"}}), "") << rank;
    }
    EXPECT_NE(rejection(1, {{"OMPI_COMM_WORLD_SIZE", "2"}}), "");
    EXPECT_NE(rejection(1, {{"PMI_SIZE", "8"}, {"PMI_RANK", "3"}}), "");
    EXPECT_NE(rejection(1, {{"PMIX_RANK", "3"}, {"SLURM_NTASKS", "4"}}), "");
    EXPECT_NE(rejection(1, {{"FLUX_TASK_RANK", "3"}, {"FLUX_JOB_SIZE", "4"}}), "");
}

TEST(Launch, OneRankOnPurposeIsAccepted) {
    EXPECT_EQ(rejection(1, {}), "");
    EXPECT_EQ(rejection(std::nullopt, {}), "");
    EXPECT_EQ(rejection(1, {{"SLURM_NTASKS", "1"}}), "");
    EXPECT_EQ(rejection(1, {{"SLURM_NTASKS", "4"}, {"OMPI_COMM_WORLD_SIZE", "1"}}), "");
}

TEST(Launch, IsBySrunUnlessAnotherLauncherIsInBetween) {
    EXPECT_TRUE(started_by_srun(environment_of({{"SLURM_PROCID", "0"}})));
    EXPECT_FALSE(
        started_by_srun(environment_of({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_SIZE", "4"}})));
    EXPECT_TRUE(started_by_srun(
        environment_of({{"SLURM_PROCID", "0"}, {"PMI_RANK", "0"}, {"PMI_SIZE", "2"}})))
        << "srun --mpi=pmi2";
    EXPECT_TRUE(started_by_srun(environment_of({{"SLURM_PROCID", "0"}, {"PMIX_RANK", "0"}})));
    EXPECT_FALSE(started_by_srun(
        environment_of({{"SLURM_PROCID", "0"}, {"PMI_RANK", "1"}, {"MPI_LOCALNRANKS", "2"}})))
        << "Hydra in an allocation of Slurm";
    EXPECT_FALSE(started_by_srun(environment_of({{"SLURM_PROCID", "0"}, {"FLUX_TASK_RANK", "1"}})));
    EXPECT_FALSE(started_by_srun(environment_of({})));
}

TEST(Launch, NamesTheRanksThatDoNotReportAUsageError) {
    for (const char* rank :
         {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "FLUX_TASK_RANK", "SLURM_PROCID"}) {
        EXPECT_TRUE(is_other_than_first_rank(environment_of({{rank, "3"}}))) << rank;
        EXPECT_FALSE(is_other_than_first_rank(environment_of({{rank, "0"}}))) << rank;
    }
    EXPECT_TRUE(is_other_than_first_rank(
        environment_of({{"SLURM_PROCID", "0"}, {"OMPI_COMM_WORLD_RANK", "1"}})))
        << "mpirun in an allocation passes SLURM_PROCID on";
    EXPECT_FALSE(is_other_than_first_rank(environment_of({{"PBS_JOBID", "17.server"}})));
}

TEST(Launch, CountsTheRanksOfEachLauncher) {
    EXPECT_EQ(launched_ranks(environment_of({{"PMI_RANK", "1"}, {"PMI_SIZE", "8"}})), 8);
    EXPECT_EQ(launched_ranks(environment_of({{"PMIX_RANK", "1"}, {"SLURM_NTASKS", "6"}})), 6);
    EXPECT_EQ(launched_ranks(environment_of({{"FLUX_TASK_RANK", "1"}, {"FLUX_JOB_SIZE", "4"}})), 4);
    EXPECT_EQ(launched_ranks(environment_of({{"PBS_JOBID", "17.server"}})), 1);
}

TEST(Launch, SeveralRanksAreNeverRejected) {
    EXPECT_EQ(rejection(2, {{"SLURM_NTASKS", "4"}}), "");
    EXPECT_EQ(rejection(4, {{"OMPI_COMM_WORLD_SIZE", "4"}}), "");
}

TEST(Launch, ValuesThatAreNoNumbersHaveNoEffect) {
    EXPECT_EQ(rejection(1, {{"SLURM_NTASKS", "many"}}), "");
    EXPECT_EQ(rejection(1, {{"SLURM_NTASKS", ""}}), "");
    EXPECT_EQ(rejection(1, {{"SLURM_NTASKS", "4x"}}), "");
    EXPECT_EQ(rejection(1, {{"SLURM_NTASKS", "99999999999"}}), "");
}

TEST(Launch, AnExitEndsTheOtherRanksUnlessSrunHasTheRecoveryOption) {
    const auto ends = [](const char* kill_bad_exit, const char* tasks_per_node) {
        return exit_ends_other_ranks(
            environment_of({{"SLURM_PROCID", "3"},
                            {"SLURM_KILL_BAD_EXIT", kill_bad_exit},
                            {"SLURM_STEP_TASKS_PER_NODE", tasks_per_node}}));
    };
    EXPECT_FALSE(ends("0", "1"));
    EXPECT_FALSE(ends("0", "1(x4)"));
    EXPECT_TRUE(ends("1", "1(x4)"));
    for (const char* shared : {"2", "2(x2)", "1,2", "1(x2),2", "12", ""}) {
        EXPECT_TRUE(ends("0", shared)) << shared << ": Slurm's PMIx plugin ends the step";
    }
    EXPECT_TRUE(exit_ends_other_ranks(
        environment_of({{"SLURM_PROCID", "3"}, {"SLURM_KILL_BAD_EXIT", "0"}})));
    EXPECT_TRUE(exit_ends_other_ranks(environment_of({{"SLURM_PROCID", "0"},
                                                      {"SLURM_KILL_BAD_EXIT", "0"},
                                                      {"SLURM_STEP_TASKS_PER_NODE", "1"},
                                                      {"OMPI_COMM_WORLD_SIZE", "4"}})));
}

TEST(Launch, AnExitEndsTheOtherRanksUnlessMpirunHasTheRecoveryOption) {
    EXPECT_TRUE(exit_ends_other_ranks(environment_of({})));
    EXPECT_TRUE(exit_ends_other_ranks(environment_of({{"OMPI_MCA_orte_enable_recovery", "0"}})));
    EXPECT_FALSE(exit_ends_other_ranks(environment_of({{"OMPI_MCA_orte_enable_recovery", "1"}})));
}

}  // namespace
}  // namespace hpcai::comm
