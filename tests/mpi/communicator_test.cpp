// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <bit>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <mpi.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>

#include "world.hpp"

namespace {
int started_sends = 0;
}

/// Counts the sends of all code in this program.
extern "C" int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm ranks, MPI_Request* request) {
    ++started_sends;
    return PMPI_Isend(data, count, type, to, tag, ranks, request);
}

namespace hpcai::comm {
namespace {

using mpi_tests::kLargestCount;
using mpi_tests::world;

/// Sizes below, at and above the limit of one MPI call.
class Collectives : public testing::TestWithParam<std::size_t> {
protected:
    Communicator& ranks_ = world().everyone;
    int rank_ = ranks_.rank();
    int size_ = ranks_.size();
    std::size_t count_ = GetParam();

    /// Returns small integers, so that float sums are exact; they differ between ranks and
    /// positions.
    template <typename T>
    std::vector<T> values_of(int rank, std::size_t count) const {
        std::vector<T> values(count);
        for (std::size_t index = 0; index < count; ++index) {
            values[index] = static_cast<T>(index % 1009 + 10007 * static_cast<std::size_t>(rank));
        }
        return values;
    }

    template <typename T>
    std::vector<T> sum_over_ranks(std::size_t count) const {
        std::vector<T> sum(count);
        for (int rank = 0; rank < size_; ++rank) {
            const std::vector<T> values = values_of<T>(rank, count);
            for (std::size_t index = 0; index < count; ++index) sum[index] += values[index];
        }
        return sum;
    }
};

INSTANTIATE_TEST_SUITE_P(Counts, Collectives,
                         testing::Values(0, 1, 17, kLargestCount, 3 * kLargestCount + 5));

TEST_P(Collectives, AllReduceSumAddsFloatsDoublesAndIntegers) {
    std::vector<float> floats = values_of<float>(rank_, count_);
    ranks_.all_reduce_sum(floats);
    EXPECT_EQ(floats, sum_over_ranks<float>(count_));
    std::vector<double> doubles = values_of<double>(rank_, count_);
    ranks_.all_reduce_sum(doubles);
    EXPECT_EQ(doubles, sum_over_ranks<double>(count_));
    std::vector<std::int64_t> integers = values_of<std::int64_t>(rank_, count_);
    for (std::int64_t& value : integers) value += std::int64_t{1} << 40;
    ranks_.all_reduce_sum(integers);
    std::vector<std::int64_t> expected = sum_over_ranks<std::int64_t>(count_);
    for (std::int64_t& value : expected) value += size_ * (std::int64_t{1} << 40);
    EXPECT_EQ(integers, expected);
}

TEST_P(Collectives, AllReduceMaxTakesTheGreatestAlsoOfNegativeValues) {
    std::vector<double> values(count_);
    for (std::size_t index = 0; index < count_; ++index) {
        values[index] = -1.0 - (rank_ + static_cast<int>(index)) % size_;
    }
    ranks_.all_reduce_max(values);
    EXPECT_EQ(values, std::vector<double>(count_, -1.0));
}

TEST_P(Collectives, ReduceSumChangesOnlyTheRoot) {
    const int root = size_ - 1;
    std::vector<float> values = values_of<float>(rank_, count_);
    ranks_.reduce_sum(values, root);
    EXPECT_EQ(values,
              rank_ == root ? sum_over_ranks<float>(count_) : values_of<float>(rank_, count_));
}

TEST_P(Collectives, BroadcastGivesTheBytesOfTheRoot) {
    const int root = size_ / 2;
    std::vector<int> values = values_of<int>(rank_, count_);
    ranks_.broadcast(std::as_writable_bytes(std::span(values)), root);
    EXPECT_EQ(values, values_of<int>(root, count_));
}

TEST_P(Collectives, AllGatherPutsRanksOneAfterTheOther) {
    const std::vector<int> mine = values_of<int>(rank_, count_);
    std::vector<int> all(count_ * static_cast<std::size_t>(size_));
    ranks_.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    std::vector<int> expected;
    for (int rank = 0; rank < size_; ++rank) {
        const std::vector<int> part = values_of<int>(rank, count_);
        expected.insert(expected.end(), part.begin(), part.end());
    }
    EXPECT_EQ(all, expected);
}

TEST(Collective, AllGatherSendsOneMessageForEachDoublingOfTheRanks) {
    Communicator& ranks = world().everyone;
    const std::array mine{std::byte{1}};
    std::vector<std::byte> all(static_cast<std::size_t>(ranks.size()));
    started_sends = 0;
    ranks.all_gather(mine, all);
    EXPECT_EQ(started_sends, std::bit_width(static_cast<unsigned>(ranks.size() - 1)));
}

TEST_P(Collectives, MessagesGoRoundARing) {
    if (size_ == 1) GTEST_SKIP() << "a ring needs two ranks";
    const int next = (rank_ + 1) % size_;
    const int previous = (rank_ + size_ - 1) % size_;
    std::vector<int> mine = values_of<int>(rank_, count_);
    std::vector<int> received(count_, -1);
    const auto send = [&] { ranks_.send(std::as_bytes(std::span(mine)), next, 5); };
    // Odd and even ranks alternate, so that no send needs a buffer.
    if (rank_ % 2 == 0) send();
    ranks_.receive(std::as_writable_bytes(std::span(received)), previous, 5);
    if (rank_ % 2 != 0) send();
    EXPECT_EQ(received, values_of<int>(previous, count_));
}

TEST(Communicator, SumsAreTheSameBitsEachTime) {
    Communicator& ranks = world().everyone;
    std::vector<float> first(5000);
    for (std::size_t index = 0; index < first.size(); ++index) {
        first[index] =
            1.0F / static_cast<float>(index + 3 * static_cast<std::size_t>(ranks.rank()) + 1);
    }
    const std::vector<float> original = first;
    ranks.all_reduce_sum(first);
    for (int repeat = 0; repeat < 5; ++repeat) {
        std::vector<float> again = original;
        ranks.all_reduce_sum(again);
        ASSERT_EQ(again, first);
    }
}

TEST(Communicator, SplitOrdersByKeyAndSeparatesParts) {
    Communicator& ranks = world().everyone;
    const int color = ranks.rank() % 2;
    const auto part = ranks.split(color, -ranks.rank());
    const int members = (ranks.size() + 1 - color) / 2;
    EXPECT_EQ(part->size(), members);
    EXPECT_EQ(part->rank(), members - 1 - ranks.rank() / 2);
    std::array<double, 1> sum{static_cast<double>(ranks.rank())};
    part->all_reduce_sum(sum);
    double expected = 0;
    for (int rank = color; rank < ranks.size(); rank += 2) expected += rank;
    EXPECT_EQ(sum[0], expected);
}

TEST(Communicator, UnequalCountsAreRejectedBeforeAnyMessage) {
    Communicator& ranks = world().everyone;
    const std::array<std::byte, 4> mine{};
    std::vector<std::byte> all(mine.size() * static_cast<std::size_t>(ranks.size()) + 1);
    EXPECT_THROW(ranks.all_gather(mine, all), Error);
    ranks.barrier();
}

TEST(Communicator, WhatMpiRejectsBecomesAnError) {
    Communicator& ranks = world().everyone;
    std::array<std::byte, 1> bytes{};
    try {
        ranks.send(bytes, ranks.size(), 0);
        FAIL() << "a message to a rank that does not exist was sent";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::internal);
        EXPECT_NE(std::string(error.what()).find("MPI_Isend: "), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace hpcai::comm
