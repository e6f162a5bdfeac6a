// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

namespace hpcai::comm {
namespace {

std::string output_of(const std::string& command) {
    std::FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return "";
    std::string output;
    std::array<char, 4096> buffer{};
    while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe)) {
        output.append(buffer.data(), count);
    }
    pclose(pipe);
    return output;
}

struct Death {
    int victim;
    std::string expected;  // states: 0 absent, 1 completed, 2 failed; then the exit code
};

/// Real processes in three groups of two ranks, one of which is killed. mpirun's exit code has no
/// meaning after a recovery, so only the survivors' output is checked.
class RankDeath : public testing::TestWithParam<Death> {};

INSTANTIATE_TEST_SUITE_P(Victims, RankDeath,
                         testing::Values(Death{0, "VOTERS 1,2 SUM 6 STATES 0:0 1:0 1:0\n"},
                                         Death{1, "VOTERS 1,2 SUM 6 STATES 2:6 1:0 1:0\n"}));

TEST_P(RankDeath, TheSurvivingGroupsVote) {
    const char* binary = std::getenv("HPCAI500_BINARY");
    const std::filesystem::path program =
        std::filesystem::path(binary == nullptr ? "" : binary).parent_path() / "mpi_test";
    if (!std::filesystem::exists(program)) GTEST_SKIP() << "there is no " << program;
    const char* recovery = std::getenv("HPCAI500_RECOVERY");
    if (recovery == nullptr) GTEST_SKIP() << "this mpirun ends all ranks with the first";
    const std::string output =
        output_of(std::string("timeout 60 ") + std::getenv("HPCAI500_MPIRUN") + " " + recovery +
                  " --bind-to none -np 6 " + program.string() +
                  " --victim=" + std::to_string(GetParam().victim) + " 2>&1");
    EXPECT_NE(output.find(GetParam().expected), std::string::npos) << output;
}

}  // namespace
}  // namespace hpcai::comm
