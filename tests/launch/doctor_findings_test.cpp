// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <sstream>

#include <gtest/gtest.h>

#include <hpcai/base/text.hpp>
#include <hpcai/launch/doctor_findings.hpp>

namespace hpcai::launch {
namespace {

/// Returns two ranks on each of two hosts with 8 cores and two NUMA nodes, without faults.
std::vector<RankHealth> four_ranks() {
    std::vector<RankHealth> ranks(4);
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        RankHealth& health = ranks[rank];
        health.node = static_cast<int>(rank / 2);
        health.host = "host" + std::to_string(health.node);
        health.program_sha256 = std::string(64, 'a');
        health.mpi = "Open MPI 4.1";
        health.config_sha256 = std::string(64, 'b');
        health.device = "a CPU";
        health.cores = 8;
        health.allowed_cores = 4;
        health.numa_nodes = 2;
        health.free_bytes = 1e12;
        health.golden_sha256 = std::string(64, 'c');
    }
    return ranks;
}

Finding finding_of(const std::vector<RankHealth>& ranks, const std::string& check) {
    const auto findings = diagnose_launch(ranks, {"hpcai500 run --config a.yaml"});
    const auto found = std::ranges::find(findings, check, &Finding::check);
    return found == findings.end() ? Finding{} : *found;
}

TEST(Doctor, FindsNothingWrongWhereNothingIs) {
    const auto findings = diagnose_launch(four_ranks(), {"hpcai500 run"});
    EXPECT_EQ(findings.size(), 5U);
    EXPECT_TRUE(std::ranges::none_of(findings, &Finding::is_wrong)) << findings_text(findings);
    EXPECT_TRUE(findings_text(findings).ends_with("DOCTOR ok\n"));
}

TEST(Doctor, NamesTheRankThatHasAnotherProgramOrLibrary) {
    auto ranks = four_ranks();
    ranks[3].mpi = "Open MPI 5.0";
    EXPECT_EQ(
        finding_of(ranks, "program").text,
        "the MPI library, Open MPI 5.0, differs from that of the other ranks: rank 3 on host1");
    ranks[2].program_sha256 = "another";
    EXPECT_EQ(finding_of(ranks, "program").text,
              "the program differs from that of the other ranks: rank 2 on host1");
    EXPECT_EQ(finding_of(ranks, "program").code, ExitCode::launch);
}

TEST(Doctor, NamesRanksThatReadAnotherConfigurationButNotThoseThatReadNone) {
    auto ranks = four_ranks();
    ranks[1].config_sha256 = "";
    EXPECT_FALSE(finding_of(ranks, "config").is_wrong);
    ranks[2].config_sha256 = ranks[3].config_sha256 = "another";
    EXPECT_EQ(finding_of(ranks, "config").text,
              "the configuration differs from that of rank 0: ranks 2, 3 on host1");
    EXPECT_EQ(finding_of(ranks, "config").code, ExitCode::launch);
}

TEST(Doctor, CorrectsABindingThatLeavesCoresIdle) {
    auto ranks = four_ranks();
    ranks[0].allowed_cores = 1;
    const Finding finding = finding_of(ranks, "binding");
    EXPECT_EQ(finding.text, "rank 0 on host0 may use 1 of 8 cores, shared by 1 rank");
    EXPECT_EQ(finding.remedy, "mpirun -np 4 --bind-to none hpcai500 run --config a.yaml");
    EXPECT_EQ(finding.code, ExitCode::ok) << "a run would start";
}

TEST(Doctor, WarnsARunOfTheDefaultBindingOfMpirun) {
    const device::Cores bound{.machine = 8, .allowed = 1}, unbound{.machine = 8, .allowed = 8};
    EXPECT_EQ(describe_restricted_binding(bound, {.ranks_sharing_cores = 1, .ranks_on_node = 2}),
              "\nwarning: rank 0 may use 1 of 8 cores, shared by 1 rank; start with `mpirun\n"
              "    --bind-to none` or `srun --cpu-bind=none`");
    EXPECT_EQ(describe_restricted_binding(unbound, {.ranks_sharing_cores = 2, .ranks_on_node = 2}),
              "");
}

TEST(Doctor, FindsMoreRanksThanCores) {
    auto ranks = four_ranks();
    for (RankHealth& rank : ranks)
        rank.cores = rank.allowed_cores = 1, rank.ranks_sharing_cores = 2;
    EXPECT_EQ(finding_of(ranks, "binding").text,
              "ranks 0, 1, 2, 3 on host0, host1: 2 ranks share 1 core");
}

TEST(Doctor, FindsARankThatMayUseTheCoresOfSeveralNumaNodes) {
    auto ranks = four_ranks();
    ranks[1].allowed_numa_nodes = 2;
    EXPECT_EQ(finding_of(ranks, "binding").text, "rank 1 on host0 may use cores of 2 NUMA nodes");
    ranks[1].numa_nodes = 4;
    EXPECT_FALSE(finding_of(ranks, "binding").is_wrong) << "fewer ranks than NUMA nodes";
}

TEST(Doctor, BindsToNumaNodesWithTheLauncherThatStartedTheRanks) {
    std::vector<RankHealth> ranks(8, four_ranks().front());
    for (RankHealth& rank : ranks) rank.allowed_numa_nodes = 2;
    for (RankHealth& rank : ranks)
        rank.cores = rank.allowed_cores = 8, rank.ranks_sharing_cores = 8;
    const auto remedy = [&](bool by_srun) {
        return diagnose_launch(ranks, {"hpcai500 run", by_srun}).at(2).remedy;
    };
    EXPECT_EQ(remedy(false), "mpirun -np 8 --map-by ppr:4:numa --bind-to numa hpcai500 run");
    EXPECT_EQ(remedy(true),
              "srun --mpi=pmix --ntasks=8 --ntasks-per-node=8 --cpu-bind=map_ldom:0,0,0,0,1,1,1,1 "
              "hpcai500 run");
    ranks.resize(7);
    EXPECT_EQ(remedy(false), "") << "a script of `hpcai500 sbatch` does not bind them either";
}

TEST(Doctor, FindsAnOutputThatNotAllRanksShareOrThatIsFull) {
    auto ranks = four_ranks();
    ranks[2].free_bytes = 1e6;
    EXPECT_EQ(finding_of(ranks, "output").text, "rank 2 on host1: 977 KiB free");
    ranks[3].sees_output = false;
    EXPECT_EQ(finding_of(ranks, "output").text,
              "a file that rank 0 has written is not visible to rank 3 on host1");
    ranks[1].output_error = "cannot write 'x'";
    EXPECT_EQ(finding_of(ranks, "output").text, "rank 1 on host0: cannot write 'x'");
    ranks[0].output_rejection = "output directory a: exists";
    EXPECT_EQ(finding_of(ranks, "output").text, "output directory a: exists");
    EXPECT_EQ(finding_of(ranks, "output").code, ExitCode::usage);
}

TEST(Doctor, NamesTheHostWhoseStepsCameToOtherBits) {
    auto ranks = four_ranks();
    ranks[2].golden_sha256 = "other";
    Finding finding = finding_of(ranks, "golden");
    EXPECT_EQ(finding.text, "the result differs from that of the other ranks: rank 2 on host1");
    EXPECT_EQ(finding.code, ExitCode::mismatch);
    ranks[3].golden_sha256 = "other";
    finding = finding_of(ranks, "golden");
    EXPECT_EQ(finding.text,
              "no result has a majority of the ranks: ranks 0, 1, 2, 3 on host0, host1");
}

TEST(Doctor, CallsWhatWouldNotStopARunAWarning) {
    auto ranks = four_ranks();
    ranks[0].allowed_cores = 1;
    std::string text = findings_text(diagnose_launch(ranks, {"hpcai500 run"}));
    EXPECT_NE(text.find("\nbinding   warning rank 0 on host0 may use 1 of 8 "), std::string::npos)
        << text;
    EXPECT_TRUE(text.ends_with("\nDOCTOR ok, 1 warning\n")) << text;
    ranks[2].free_bytes = 1e6;
    ranks[3].golden_sha256 = "other";
    text = findings_text(diagnose_launch(ranks, {"hpcai500 run"}));
    EXPECT_NE(text.find("\noutput    warning rank 2 on host1: 977 KiB free\n"), std::string::npos)
        << text;
    EXPECT_NE(text.find("\ngolden    WRONG   the result differs "), std::string::npos) << text;
    EXPECT_TRUE(text.ends_with("\nDOCTOR 1 finding, 2 warnings\n")) << text;
}

TEST(Doctor, WarnsOfAResultThatCannotBeRanked) {
    config::Config config;
    EXPECT_EQ(diagnose_rules(config).text, "run.level is custom: not rankable");
    EXPECT_FALSE(diagnose_rules(config).is_wrong) << "as intended";
    config.run.level = config::Level::free;
    config.workload.epochs = 3;
    const Finding finding = diagnose_rules(config);
    EXPECT_TRUE(finding.is_wrong);
    EXPECT_EQ(finding.code, ExitCode::ok) << "a run would start";
    EXPECT_NE(finding.text.find("rule 3: workload.epochs"), std::string::npos) << finding.text;
    EXPECT_NE(finding.text.find("; not rankable: the section submission lacks system_name, "),
              std::string::npos)
        << finding.text;
}

TEST(Doctor, FitsAPage) {
    auto ranks = four_ranks();
    for (RankHealth& rank : ranks) rank.allowed_cores = 1;
    ranks[2].golden_sha256 = "other";
    const std::string text = findings_text(diagnose_launch(
        ranks,
        {"hpcai500 run --config configs/imagenet_nvidia.yaml --set training.precision=bf16"}));
    EXPECT_NE(text.find("hpcai500 run --config \\\n      configs/imagenet_nvidia.yaml --set "),
              std::string::npos)
        << "a command goes on after a backslash:\n"
        << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), kPageWidth) << line;
}

TEST(Doctor, EscapesWhatHostsAreCalled) {
    auto ranks = four_ranks();
    ranks[2].host = "\x1b[2J";
    ranks[2].golden_sha256 = "other";
    const std::string text = findings_text(diagnose_launch(ranks, {"hpcai500 run"}));
    EXPECT_NE(text.find("golden    WRONG   the result differs from that of the other ranks: rank 2 "
                        "on\n                  \\x1b[2J\n"),
              std::string::npos)
        << text;
    EXPECT_TRUE(text.ends_with("DOCTOR 1 finding\n"));
}

}  // namespace
}  // namespace hpcai::launch
