// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/workloads/inspector.hpp>

#include "storage/temporary_folder.hpp"

namespace hpcai::workloads {
namespace {

Finding finding_of(const std::string& text) {
    const storage::TemporaryFolder folder;
    Inspector inspector(folder.path());
    inspector.report("result.json", "{}", text);
    return inspector.take_findings().at(0);
}

TEST(Finding, ShowsTheLegalValueOnlyIfItIsRequested) {
    const std::string text = "seed is 4; must be 3, according to config";
    EXPECT_EQ(finding_of(text).shown(false), "seed is 4, which is wrong, according to config");
    EXPECT_EQ(finding_of(text).shown(true), text);
    EXPECT_EQ(finding_of("has 3 steps; must have 4").shown(false), "has 3 steps, which is wrong");
    EXPECT_EQ(finding_of("is missing").shown(true), "is missing");
    EXPECT_EQ(finding_of("is missing").shown(false), "is missing");
}

TEST(Finding, HidesEverythingAfterAStoredTextThatLooksLikeALegalValue) {
    EXPECT_EQ(finding_of("name is \"a; must\"; must be \"b\"").shown(false),
              "name is \"a, which is wrong");
}

}  // namespace
}  // namespace hpcai::workloads
