// SPDX-License-Identifier: Apache-2.0
#include "child_process.hpp"

namespace hpcai::cli {
namespace {

TEST(Plan, CountsTheRecordsOfTheTrainingSet) {
    const TemporaryFolder folder;
    const auto data = [&](std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), "data");
        const Outcome outcome = run_in(folder.path(), arguments);
        ASSERT_EQ(outcome.exit_code, 0) << outcome.error;
    };
    data({"generate", "climate", "--output", "a.h5", "--samples", "3", "--height", "64", "--width",
          "96"});
    data({"transcode", "a.h5", "--output", "records"});
    const Outcome plan =
        run_in(folder.path(), {"plan", "--config", source("configs/extreme_weather.yaml"), "--set",
                               "data.path=records", "--ranks", "8"});
    EXPECT_EQ(plan.exit_code, 0) << plan.error;
    EXPECT_NE(plan.out.find(" 3 samples"), std::string::npos) << plan.out;
}

}  // namespace
}  // namespace hpcai::cli
