// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/config/config.hpp>

namespace hpcai::config {
namespace {

using Steps = std::vector<std::int64_t>;

TEST(KeptSteps, AreSpreadOverTheEndsOfEpochsBeforeTheLast) {
    Config config;
    config.workload.epochs = 20;
    EXPECT_EQ(kept_steps(config, 7), Steps{});
    config.run.keep_checkpoints = 1;
    EXPECT_EQ(kept_steps(config, 7), Steps{70});
    config.run.keep_checkpoints = 4;
    EXPECT_EQ(kept_steps(config, 7), (Steps{28, 56, 84, 112}));
    config.workload.epochs = 3;
    EXPECT_EQ(kept_steps(config, 7), (Steps{7, 14})) << "no more than there are epochs";
    config.workload.epochs = 1;
    EXPECT_EQ(kept_steps(config, 7), Steps{});
}

}  // namespace
}  // namespace hpcai::config
