// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include "launch.hpp"
#include "result_edits.hpp"

/// Runs of problem class mini with other data than those of its rules.
namespace hpcai::end_to_end {
namespace {

TEST(MiniRun, WithOtherDataIsInvalidAndBothVerifiersAgree) {
    const storage::TemporaryFolder folder;
    make_pictures(folder.path());
    write(folder / "tiny.yaml", kResNet50Config);
    const Outcome outcome = run_ranks(folder.path(), 1,
                                      {"bagging.M=1", "bagging.sampler=poisson", "run.level=free",
                                       "workload.problem_class=mini", "run.seed=12"});
    EXPECT_EQ(outcome.exit_code, 9) << outcome.error;
    EXPECT_THAT(outcome.error,
                testing::HasSubstr("INVALID: rule 1: the SHA-256 of the samples must be "));
    EXPECT_THAT(last_line(outcome.out),
                testing::StartsWith("RESULT INVALID  workload=image_classification-mini "));
    EXPECT_THAT(outcome.out, testing::HasSubstr("rule 3: run.seed must be 1, 2 or 3, is 12"));
    expect_verified(folder / "result");
}

}  // namespace
}  // namespace hpcai::end_to_end
