// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/communicator.hpp>

#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;

TEST(CollectiveTryOverMpi, EveryRankThrowsTheFailureOfTheLowestFailingRank) {
    Communicator& ranks = world().everyone;
    const int lowest = ranks.size() / 2;
    try {
        collective_try(ranks, [&] {
            require(ranks.rank() < lowest, ExitCode::data, "rank {} has no data", ranks.rank());
        });
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_EQ(error.what(), "rank " + std::to_string(lowest) + " has no data");
    }
    collective_try(ranks, [] {});
}

TEST(Broadcast, GivesEveryRankBytesWhoseNumberItDoesNotKnow) {
    Communicator& ranks = world().everyone;
    const int root = ranks.size() - 1;
    const std::vector<std::byte> mine(static_cast<std::size_t>(ranks.rank()) + 3,
                                      static_cast<std::byte>(ranks.rank()));
    EXPECT_EQ(
        broadcast(ranks, mine, root),
        std::vector<std::byte>(static_cast<std::size_t>(root) + 3, static_cast<std::byte>(root)));
}

TEST(AnnouncedFailure, EndsTheCallsOfTheOtherRanks) {
    Communicator& everyone = world().everyone;
    if (everyone.size() == 1) GTEST_SKIP() << "needs two ranks";
    std::array<double, 1> values{1};
    const auto group = everyone.split(0, everyone.rank());
    if (group->rank() == 1) {
        group->announce_failure(Error(ExitCode::data, "a photograph is missing"));
        EXPECT_THROW(group->barrier(), Error);
    } else {
        try {
            group->all_reduce_sum(values);
            FAIL() << "the sum came without rank 1";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_STREQ(error.what(), "a photograph is missing");
        }
        EXPECT_THROW(group->barrier(), Error) << "a failed group must stay failed";
    }
    everyone.barrier();
}

TEST(TransportError, IsThrownAsAWatchdogErrorHereAndThenOnTheOthers) {
    Communicator& everyone = world().everyone;
    if (everyone.size() == 1) GTEST_SKIP() << "needs two ranks";
    constexpr int kTag = 5;
    const auto group = everyone.split(0, everyone.rank());
    std::array<double, 4> values{};
    const auto bytes = std::as_writable_bytes(std::span(values));
    if (group->rank() == 1) group->send(bytes, 0, kTag);
    try {
        if (group->rank() == 0) {
            group->receive(bytes.first(8), 1, kTag);  // MPI cannot deliver the message
        } else {
            group->barrier();
        }
        FAIL() << "nothing was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::watchdog);
        EXPECT_TRUE(
            std::string(error.what()).starts_with("a rank cannot be reached: MPI_Testall: "))
            << error.what();
        if (group->rank() == 0) group->announce_failure(error);
    }
    EXPECT_THROW(group->barrier(), Error) << "a failed group must stay failed";
    everyone.barrier();
}

TEST(AnnouncedFailure, AMessageThatComesLateDoesNotTouchTheCallersMemory) {
    Communicator& everyone = world().everyone;
    if (everyone.size() < 3) GTEST_SKIP() << "needs three ranks";
    constexpr int kTag = 5;
    const auto group = everyone.split(0, everyone.rank());
    std::array<double, 3> values{1, 2, 3};
    if (group->rank() == 2) group->announce_failure(Error(ExitCode::data, "bad"));
    if (group->rank() == 0) {
        EXPECT_THROW(group->receive(std::as_writable_bytes(std::span(values)), 1, kTag), Error);
    }
    everyone.barrier();
    if (group->rank() == 1) {  // it has not yet checked for a failure
        const std::array<double, 3> late{7, 8, 9};
        group->send(std::as_bytes(std::span(late)), 0, kTag);
    }
    for (int round = 0; round < 100; ++round) everyone.barrier();  // the message arrives meanwhile
    EXPECT_EQ(values, (std::array<double, 3>{1, 2, 3}));
}

}  // namespace
}  // namespace hpcai::comm
