// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>

#include "support/largest_error.hpp"
#include "world.hpp"

/// Sums of numbers that round, compared with sums in a wider type.
namespace hpcai::comm {
namespace {

using mpi_tests::kLargestCount;
using mpi_tests::world;
using tests::LargestError;

/// Returns the terms of rank `rank`: both signs, magnitudes over six orders.
template <typename T>
std::vector<T> terms_of(int rank, std::size_t count) {
    CounterStream random(4, RandomPurpose::test, static_cast<std::uint32_t>(rank));
    std::vector<T> terms(count);
    for (T& term : terms) {
        term = static_cast<T>(random.normal() * std::pow(10, 6 * random.uniform() - 3));
    }
    return terms;
}

/// Sums over the ranks and their error bounds. n numbers added in any order, with each addition
/// rounded, differ from their exact sum by less than (n - 1) u sum |x| (Higham, Accuracy and
/// Stability of Numerical Algorithms, eq. 4.6, to first order in u).
template <typename T>
struct Reference {
    std::vector<long double> sums, bounds;

    Reference(int ranks, std::size_t count) : sums(count), bounds(count) {
        const long double u = std::numeric_limits<T>::epsilon() / 2;
        for (int rank = 0; rank < ranks; ++rank) {
            const std::vector<T> terms = terms_of<T>(rank, count);
            for (std::size_t i = 0; i < count; ++i) {
                sums[i] += terms[i];
                bounds[i] += std::abs(static_cast<long double>(terms[i])) * u * (ranks - 1);
            }
        }
    }

    /// Adds the errors of `got` as shares of the bound.
    void compare(const std::vector<T>& got, LargestError& error) const {
        for (std::size_t i = 0; i < got.size(); ++i) {
            const long double distance = std::abs(got[i] - sums[i]);
            const long double share = distance == 0 ? 0 : distance / bounds[i];
            error.add(static_cast<double>(share), fmt::format("element {}", i));
        }
    }
};

class RoundedSums : public testing::TestWithParam<std::size_t> {
protected:
    Communicator& ranks_ = world().everyone;
    std::size_t count_ = GetParam();
    std::vector<float> mine_ = terms_of<float>(ranks_.rank(), count_);
    Reference<float> reference_{ranks_.size(), count_};
};

INSTANTIATE_TEST_SUITE_P(Counts, RoundedSums, testing::Values(1, 17, 3 * kLargestCount + 5));

TEST_P(RoundedSums, OfAllReduceAreNearTheSumInDoubles) {
    LargestError error("all-reduce of floats, share of the rounding bound", 1);
    std::vector<float> sums = mine_;
    ranks_.all_reduce_sum(sums);
    reference_.compare(sums, error);
}

TEST_P(RoundedSums, OfDoublesAreNearTheSumInLongDoubles) {
    LargestError error("all-reduce of doubles, share of the rounding bound", 1);
    std::vector<double> sums = terms_of<double>(ranks_.rank(), count_);
    ranks_.all_reduce_sum(sums);
    Reference<double>(ranks_.size(), count_).compare(sums, error);
}

TEST_P(RoundedSums, OfReduceAreNearTheSumInDoubles) {
    LargestError error("reduce, share of the rounding bound", 1);
    for (int root = 0; root < ranks_.size(); ++root) {
        std::vector<float> sums = mine_;
        ranks_.reduce_sum(sums, root);
        if (ranks_.rank() == root) reference_.compare(sums, error);
    }
}

TEST_P(RoundedSums, AreTheSameBitsOnAllRanks) {
    std::vector<float> sums = mine_;
    ranks_.all_reduce_sum(sums);
    std::vector<float> first = sums;
    ranks_.broadcast(std::as_writable_bytes(std::span(first)), 0);
    EXPECT_EQ(sums, first);
}

TEST_P(RoundedSums, OfRanksInAnyOrderAreNearTheSameSum) {
    LargestError error("all-reduce of ranks in another order, share of the rounding bound", 1);
    for (int shift = 0; shift < ranks_.size(); ++shift) {
        const int key = (ranks_.rank() * 3 + shift) % ranks_.size();
        const auto reordered = ranks_.split(0, key);
        std::vector<float> sums = mine_;
        reordered->all_reduce_sum(sums);
        reference_.compare(sums, error);
        std::vector<float> in_order = mine_;
        ranks_.all_reduce_sum(in_order);
        // Two numbers have only one sum; the order matters for three or more.
        if (ranks_.size() <= 2) {
            EXPECT_EQ(sums, in_order);
        }
    }
}

}  // namespace
}  // namespace hpcai::comm
