// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/results/run_output.hpp>

namespace hpcai::results {
namespace {

TEST(EventLine, HasTheDirectoryAndTheNumberOfTheRunBeforeItsValues) {
    const std::string line = event_line("stopped", "a/\"b\"\xff", 3, {{"step", 7}});
    EXPECT_EQ(line.substr(0, 33), R"({"event":"stopped","time_utc":"20)");
    EXPECT_EQ(line.substr(line.find(R"(,"directory")")), R"(,"directory":"a/\"b\")"
                                                         "\xEF\xBF\xBD"
                                                         R"(","repetition":3,"step":7})"
                                                         "\n");
}

TEST(EventLine, HasNoNumberForASingleRun) {
    const auto event = nlohmann::json::parse(event_line("result", "a", 0, {{"M", 2}}));
    EXPECT_TRUE(event.at("repetition").is_null());
}

}  // namespace
}  // namespace hpcai::results
