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

LaunchRecord example() {
    const RunRecord run = partial_record();
    LaunchRecord launch;
    launch.started_utc = run.time.started_utc;
    launch.config_sha256 = std::string(64, 'a');
    launch.samples_sha256 = std::string(64, 'b');
    launch.precision = run.workload.precision;
    launch.topology = run.topology;
    launch.staging = run.staging;
    launch.staging_seconds = {1.5, ""};
    launch.roofline = run.roofline;
    launch.determinism = run.determinism;
    launch.environment = run.environment;
    launch.invocations = run.invocations;
    return launch;
}

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
    EXPECT_EQ(records::from_json<LaunchRecord>(records::to_json(example()), "launch.json"),
              example());
}

TEST(LaunchJson, IsRejectedWhereItsPlacesDoNotFit) {
    LaunchRecord launch = example();
    launch.topology.ranks += 1;
    EXPECT_THAT(message_of(launch), HasSubstr("'launch.json': topology.ranks"));
    launch = example();
    launch.topology.groups = 0;
    EXPECT_THAT(message_of(launch), HasSubstr("topology.groups"));
    launch = example();
    launch.topology.map.back().node = launch.topology.ranks;
    EXPECT_THAT(message_of(launch), HasSubstr("].node"));
    launch = example();
    launch.schema = "hpcai500-launch/1";
    EXPECT_THAT(message_of(launch), HasSubstr("schema: expected \"hpcai500-launch/3\""));
}

}  // namespace
}  // namespace hpcai::report
