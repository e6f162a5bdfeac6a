// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/records/run_record.hpp>

#include "example_record.hpp"

namespace hpcai::report {
namespace {

using testing::HasSubstr;

std::string message_of(const LaunchRecord& launch) {
    try {
        records::from_json<LaunchRecord>(records::to_json(launch), "launch.json");
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        return error.what();
    }
    return "";
}

TEST(LaunchJson, GivesBackWhatWasWritten) {
    EXPECT_EQ(records::from_json<LaunchRecord>(records::to_json(example_launch()), "launch.json"),
              example_launch());
}

TEST(LaunchJson, IsRejectedWhereItsPlacesDoNotFit) {
    LaunchRecord launch = example_launch();
    launch.topology.ranks += 1;
    EXPECT_THAT(message_of(launch), HasSubstr("'launch.json': topology.ranks"));
    launch = example_launch();
    launch.topology.groups = 0;
    EXPECT_THAT(message_of(launch), HasSubstr("topology.groups"));
    launch = example_launch();
    launch.topology.map.back().node = launch.topology.ranks;
    EXPECT_THAT(message_of(launch), HasSubstr("].node"));
    launch = example_launch();
    launch.schema = "hpcai500-launch/1";
    EXPECT_THAT(message_of(launch), HasSubstr("schema: expected \"hpcai500-launch/3\""));
}

}  // namespace
}  // namespace hpcai::report
