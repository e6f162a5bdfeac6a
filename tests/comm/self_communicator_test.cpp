// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {
namespace {

TEST(SelfCommunicator, CollectivesLeaveValuesAsTheyAre) {
    const auto alone = make_self_communicator();
    std::array<float, 3> values{1, 2, 3};
    alone->all_reduce_sum(values);
    alone->reduce_sum(values, 0);
    EXPECT_EQ(values, (std::array<float, 3>{1, 2, 3}));
    std::array<float, 3> gathered{};
    alone->all_gather(std::as_bytes(std::span(values)),
                      std::as_writable_bytes(std::span(gathered)));
    EXPECT_EQ(gathered, values);
}

TEST(SelfCommunicator, SplitsIntoAnotherOfOneRank) {
    const auto part = make_self_communicator()->split(7, 3);
    EXPECT_EQ(part->rank(), 0);
    EXPECT_EQ(part->size(), 1);
}

TEST(SelfCommunicator, RejectsMessagesToItselfAndUnequalCounts) {
    const auto alone = make_self_communicator();
    std::array<std::byte, 2> two{};
    std::array<std::byte, 3> three{};
    EXPECT_THROW(alone->send(two, 0, 0), Error);
    EXPECT_THROW(alone->receive(two, 0, 0), Error);
    EXPECT_THROW(alone->all_gather(two, three), Error);
    EXPECT_THROW(alone->broadcast(two, 1), Error);
}

TEST(CollectiveTry, ThrowsTheFailureOfTheOnlyRankWithItsCode) {
    const auto alone = make_self_communicator();
    try {
        collective_try(*alone, [] { throw Error(ExitCode::data, "no photographs in there"); });
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_STREQ(error.what(), "no photographs in there");
    }
}

TEST(CollectiveTry, MakesAnotherExceptionAnInternalError) {
    const auto alone = make_self_communicator();
    try {
        collective_try(*alone, [] { throw std::length_error("too long"); });
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::internal);
        EXPECT_STREQ(error.what(), "too long");
    }
}

}  // namespace
}  // namespace hpcai::comm
