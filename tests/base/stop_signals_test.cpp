// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include <gtest/gtest.h>
#include <signal.h>

#include <hpcai/base/stop_signals.hpp>

namespace hpcai {
namespace {

/// Sends `first` and `second` to this process, which exits with the number of the signal that it
/// remembers.
void receive(int first, int second) {
    const StopSignals signals;
    raise(first);
    raise(second);
    std::_Exit(StopSignals::received());
}

TEST(StopSignalsDeathTest, RememberSigusr1WhateverCameWithIt) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(receive(SIGUSR1, SIGTERM), testing::ExitedWithCode(SIGUSR1), "");
    EXPECT_EXIT(receive(SIGTERM, SIGUSR1), testing::ExitedWithCode(SIGUSR1), "");
    EXPECT_EXIT(receive(SIGINT, SIGUSR1), testing::ExitedWithCode(SIGUSR1), "");
}

TEST(StopSignalsDeathTest, RememberTheFirstOfSigtermAndSigint) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(receive(SIGTERM, SIGINT), testing::ExitedWithCode(SIGTERM), "");
    EXPECT_EXIT(receive(SIGINT, SIGTERM), testing::ExitedWithCode(SIGINT), "");
}

TEST(StopSignalsDeathTest, EndTheProcessAtTheSameSignalAgain) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(receive(SIGTERM, SIGTERM), testing::KilledBySignal(SIGTERM), "");
    EXPECT_EXIT(receive(SIGINT, SIGINT), testing::KilledBySignal(SIGINT), "");
}

}  // namespace
}  // namespace hpcai
