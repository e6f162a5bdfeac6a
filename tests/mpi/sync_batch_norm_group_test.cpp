// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/sync_batch_norm_group.hpp>

#include "world.hpp"

namespace hpcai::comm {
namespace {

using mpi_tests::world;

/// Returns the nodes of ranks, with two ranks per node.
std::vector<int> nodes_of(const Communicator& group) {
    std::vector<int> nodes;
    for (int rank = 0; rank < group.size(); ++rank) nodes.push_back(rank / 2);
    return nodes;
}

TEST(SyncBatchNormGroup, SumsOverConsecutiveRanksOfTheGroup) {
    Communicator& everyone = world().everyone;
    for (int ranks = 1; ranks <= everyone.size(); ++ranks) {
        if (everyone.size() % ranks != 0) continue;
        SyncBatchNormGroup span(ranks);
        span.connect(everyone, nodes_of(everyone));
        EXPECT_EQ(span.ranks(), ranks);
        const int first = everyone.rank() / ranks * ranks;
        // In one call of MPI and in several.
        for (const std::size_t count : {3U, 20000U}) {
            std::vector<double> values(count);
            for (std::size_t i = 0; i < count; ++i) {
                values[i] = everyone.rank() + static_cast<double>(i) / 8;
            }
            span.sum(values);
            const double of_ranks = ranks * (first + (ranks - 1) / 2.0);
            for (std::size_t i = 0; i < count; ++i) {
                ASSERT_EQ(values[i], of_ranks + ranks * static_cast<double>(i) / 8) << i;
            }
        }
        EXPECT_EQ(span.accounting().sums, 2);
        EXPECT_EQ(span.accounting().bytes, 20003 * 8);
        EXPECT_GT(span.accounting().seconds, 0);
        const SentBytes sent = sync_batch_norm_traffic(
            ranks, nodes_of(everyone), 20003 * 8)[static_cast<std::size_t>(everyone.rank())];
        EXPECT_EQ(span.accounting().sent.total, sent.total);
        EXPECT_EQ(span.accounting().sent.to_other_nodes, sent.to_other_nodes);
    }
}

TEST(SyncBatchNormGroup, MakesTheSameBitsOnAllRanks) {
    // Otherwise, the running statistics of one span would differ in their last bits.
    Communicator& everyone = world().everyone;
    constexpr std::size_t kCount = 500;
    CounterStream random(7, RandomPurpose::test, static_cast<std::uint32_t>(everyone.rank()), 0, 0);
    std::vector<double> values(kCount);
    for (double& value : values) value = random.normal() * std::exp(8 * random.uniform());
    SyncBatchNormGroup span(everyone.size());
    span.connect(everyone, nodes_of(everyone));
    span.sum(values);
    std::vector<double> all(kCount * static_cast<std::size_t>(everyone.size()));
    everyone.all_gather(std::as_bytes(std::span(values)), std::as_writable_bytes(std::span(all)));
    for (std::size_t i = 0; i < all.size(); ++i) {
        ASSERT_EQ(std::bit_cast<std::uint64_t>(all[i]),
                  std::bit_cast<std::uint64_t>(values[i % kCount]))
            << "value " << i % kCount << " of rank " << i / kCount;
    }
}

TEST(SyncBatchNormGroup, RejectsGroupsThatItsRanksDoNotDivide) {
    SyncBatchNormGroup span(world().everyone.size() + 1);
    EXPECT_THROW(span.connect(world().everyone, nodes_of(world().everyone)), Error);
    std::array<double, 1> values{};
    EXPECT_THROW(span.sum(values), Error) << "not connected";
}

/// `failing` announces a failure instead of its sum. Every other rank soon throws that failure,
/// from a sum of its span or, if the span is complete, from the next call of the group.
void expect_failure_of(int failing) {
    const auto group = world().everyone.split(0, world().everyone.rank());
    SyncBatchNormGroup span(2);
    span.connect(*group, nodes_of(*group));
    std::array<double, 4> values{};
    const auto begin = std::chrono::steady_clock::now();
    try {
        if (group->rank() == failing) throw Error(ExitCode::data, "a photograph is cut");
        span.sum(values);
        group->barrier();
        FAIL() << "the failure was not detected";
    } catch (const Error& error) {
        group->announce_failure(error);
        EXPECT_EQ(error.code(), ExitCode::data);
        EXPECT_STREQ(error.what(), "a photograph is cut");
    }
    EXPECT_THROW(span.sum(values), Error) << "a failed span must stay failed";
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(waited.count(), 5) << "of a deadline of a minute or more";
}

TEST(SyncBatchNormGroup, AFailureOfOneRankEndsTheSumsOfAll) {
    Communicator& everyone = world().everyone;
    if (everyone.size() % 2 != 0) GTEST_SKIP() << "needs pairs of ranks";
    for (int failing = 0; failing < everyone.size(); ++failing) {
        expect_failure_of(failing);
        everyone.barrier();
    }
}

}  // namespace
}  // namespace hpcai::comm
