// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include <hpcai/evaluation/ensemble.hpp>

#include "thread_communicator.hpp"

namespace hpcai::evaluation {
namespace {

constexpr float kUndefinedVote = std::numeric_limits<float>::quiet_NaN();
using Rows = std::vector<float>;

/// Rows of small pseudo-random numbers that add up to 1.
Rows predictions(std::uint32_t seed, std::size_t samples, std::int64_t classes) {
    Rows rows(samples * static_cast<std::size_t>(classes));
    for (float& value : rows) {
        seed = seed * 1664525U + 1013904223U;
        value = std::exp(static_cast<float>(seed >> 8) * 0x1p-24F * 6.0F);
    }
    for (auto row = rows.begin(); row != rows.end(); row += classes) {
        const float sum = std::accumulate(row, row + classes, 0.0F);
        std::for_each(row, row + classes, [sum](float& value) { value /= sum; });
    }
    return rows;
}

Rows soft_vote(const std::vector<Rows>& members, std::int64_t classes, std::int64_t chunk_rows) {
    Rows result;
    run_members(static_cast<int>(members.size()), [&](comm::Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        Rows mine = ensemble_vote(communicator, Vote::soft, members[rank], classes, chunk_rows);
        if (rank == 0) {
            result = std::move(mine);
        } else {
            EXPECT_TRUE(mine.empty());
        }
    });
    return result;
}

Rows majority(const std::vector<Rows>& members, std::int64_t classes, std::int64_t chunk_rows) {
    Rows result;
    run_members(static_cast<int>(members.size()), [&](comm::Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        Rows mine = ensemble_vote(communicator, Vote::majority, members[rank], classes, chunk_rows);
        if (rank == 0) result = std::move(mine);
    });
    return result;
}

TEST(SoftVote, IsTheMeanOfTheMembers) {
    const Rows result =
        soft_vote({{0.5F, 0.5F, 1.0F, 0.0F}, {0.25F, 0.75F, 0.0F, 1.0F}}, 2, kVoteChunkRows);
    EXPECT_EQ(result, (Rows{0.375F, 0.625F, 0.5F, 0.5F}));
}

TEST(SoftVote, OfOneMemberIsItself) {
    const auto alone = comm::make_self_communicator();
    const Rows mine = predictions(1, 10, 3);
    EXPECT_EQ(ensemble_vote(*alone, Vote::soft, mine, 3, 4), mine);
}

TEST(SoftVote, DoesNotDependOnTheChunk) {
    const std::vector<Rows> members{predictions(1, 37, 5), predictions(2, 37, 5),
                                    predictions(3, 37, 5)};
    const Rows whole = soft_vote(members, 5, 1000);
    for (const std::int64_t chunk_rows : {1, 7, 36, 37, 38}) {
        EXPECT_EQ(soft_vote(members, 5, chunk_rows), whole) << chunk_rows;
    }
}

TEST(SoftVote, SendsNoMoreThanAChunkAtATime) {
    const Rows rows = predictions(1, 100, 3);
    const std::size_t largest = run_members(3, [&](comm::Communicator& communicator) {
        ensemble_vote(communicator, Vote::soft, rows, 3, 8);
    });
    EXPECT_EQ(largest, 24U);
}

TEST(SoftVote, IsTheSameInEveryOrderOfTheMembersWithinTheStatedTolerance) {
    const std::vector<Rows> members{predictions(1, 200, 10), predictions(2, 200, 10),
                                    predictions(3, 200, 10)};
    const Rows first = soft_vote(members, 10, 64);
    std::vector<std::size_t> order{0, 1, 2};
    do {
        const Rows other =
            soft_vote({members[order[0]], members[order[1]], members[order[2]]}, 10, 64);
        for (std::size_t index = 0; index < first.size(); ++index) {
            EXPECT_NEAR(other[index], first[index], 3 * 0x1p-23);
        }
    } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SoftVote, CountsASampleWithANanMemberAsWrong) {
    const Rows result = soft_vote({{0.9F, 0.1F}, {kUndefinedVote, 0.5F}}, 2, 10);
    EXPECT_EQ(top_k(result, std::vector{0}, 2), (TopK{0, 0, 1}));
}

TEST(SoftVote, OfNoSampleIsEmpty) {
    EXPECT_TRUE(soft_vote({{}, {}}, 2, 10).empty());
}

TEST(SoftVote, RejectsMembersOfDifferentSizesOnEveryRank) {
    const std::vector<Rows> members{predictions(1, 4, 2), predictions(1, 3, 2)};
    std::vector<int> refusals(2);
    run_members(2, [&](comm::Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        try {
            ensemble_vote(communicator, Vote::soft, members[rank], 2);
        } catch (const Error& error) {
            refusals[rank] = static_cast<int>(error.code());
        }
    });
    EXPECT_EQ(refusals, (std::vector{1, 1}));
    const auto alone = comm::make_self_communicator();
    // 6 values are not a multiple of 4 classes
    EXPECT_THROW(ensemble_vote(*alone, Vote::soft, members[1], 4), Error);
    EXPECT_THROW(ensemble_vote(*alone, Vote::soft, members[1], 0), Error);
    EXPECT_THROW(ensemble_vote(*alone, Vote::soft, members[1], 2, 0), Error);
}

TEST(MajorityVote, SharesTheVotesOfTheMembers) {
    const Rows result = majority(
        {{0.6F, 0.4F, 0.0F}, {0.5F, 0.3F, 0.2F}, {0.0F, 0.1F, 0.9F}, {1.0F, 0.0F, 0.0F}}, 3, 1);
    EXPECT_EQ(result, (Rows{0.75F, 0.0F, 0.25F}));
}

TEST(MajorityVote, CanDifferFromTheSoftVote) {
    const std::vector<Rows> members{{0.51F, 0.49F}, {0.51F, 0.49F}, {0.0F, 1.0F}};
    EXPECT_EQ(predicted_class(majority(members, 2, 10)), 0);
    EXPECT_EQ(predicted_class(soft_vote(members, 2, 10)), 1);
}

TEST(MajorityVote, GivesATieToTheLowerClass) {
    const Rows tie_of_members = majority({{0.0F, 0.0F, 1.0F}, {0.0F, 1.0F, 0.0F}}, 3, 10);
    EXPECT_EQ(predicted_class(tie_of_members), 1);
    EXPECT_EQ(majority({{0.0F, 0.5F, 0.5F}}, 3, 10), (Rows{0.0F, 1.0F, 0.0F}));
}

TEST(MajorityVote, OmitsAMemberWithANanAndIsNanWithoutAnyVote) {
    EXPECT_EQ(majority({{kUndefinedVote, 0.5F}, {0.1F, 0.9F}}, 2, 10), (Rows{0.0F, 0.5F}));
    const Rows none = majority({{kUndefinedVote, 0.5F}, {0.1F, kUndefinedVote}}, 2, 10);
    EXPECT_EQ(top_k(none, std::vector{0}, 2), (TopK{0, 0, 1}));
}

TEST(MajorityVote, IsExactlyTheSameInEveryOrderAndChunk) {
    const std::vector<Rows> members{predictions(4, 50, 4), predictions(5, 50, 4),
                                    predictions(6, 50, 4)};
    const Rows first = majority(members, 4, 100);
    EXPECT_EQ(majority({members[2], members[0], members[1]}, 4, 7), first);
}

/// Three members, each of which was not trained on some of five samples; two classes.
struct Bag {
    std::vector<std::uint8_t> mask;
    Rows rows;
};
const std::vector<Bag> kBags{
    {{1, 1, 0, 0, 0}, {0.9F, 0.1F, 0.6F, 0.4F}},
    {{0, 1, 0, 1, 0}, {0.1F, 0.9F, 0.2F, 0.8F}},
    {{0, 1, 0, 0, 1}, {0.4F, 0.6F, kUndefinedVote, 0.5F}},
};

OutOfBagQuality out_of_bag(const std::vector<Bag>& bags, const std::vector<std::int32_t>& labels,
                           std::int64_t chunk_rows) {
    OutOfBagQuality quality;
    run_members(static_cast<int>(bags.size()), [&](comm::Communicator& communicator) {
        const auto rank = static_cast<std::size_t>(communicator.rank());
        const std::span<const std::int32_t> mine =
            rank == 0 ? std::span(labels) : std::span<const std::int32_t>();
        const OutOfBagQuality result =
            out_of_bag_vote(communicator, {bags[rank].mask, bags[rank].rows, 2}, mine, chunk_rows);
        if (rank == 0) {
            quality = result;
        } else {
            EXPECT_EQ(result, OutOfBagQuality{});
        }
    });
    return quality;
}

TEST(OutOfBagVote, UsesOnlyTheMembersThatDidNotTrainOnASample) {
    // Sample 0: member 0 predicts 0. Sample 1: the mean (1.1, 1.9) / 3 gives 1. Sample 2: in every
    // bag. Sample 3: member 1 predicts 1. Sample 4: NaN, wrong.
    for (const std::int64_t chunk_rows : {1, 2, 3, 100}) {
        EXPECT_EQ(out_of_bag(kBags, {0, 1, 0, 1, 1}, chunk_rows), (OutOfBagQuality{{3, 3, 4}, 4}));
        EXPECT_EQ(out_of_bag(kBags, {1, 0, 1, 0, 0}, chunk_rows), (OutOfBagQuality{{0, 3, 4}, 4}));
    }
}

TEST(OutOfBagVote, IsTheSameInEveryOrderOfTheMembers) {
    EXPECT_EQ(out_of_bag({kBags[2], kBags[0], kBags[1]}, {0, 1, 0, 1, 1}, 2),
              out_of_bag(kBags, {0, 1, 0, 1, 1}, 2));
}

TEST(OutOfBagVote, CoversNothingWhenEverySampleIsInEveryBag) {
    const Bag full{{0, 0, 0, 0, 0}, {}};
    EXPECT_EQ(out_of_bag({full, full}, {0, 1, 0, 1, 1}, 2), (OutOfBagQuality{{0, 0, 0}, 0}));
}

TEST(OutOfBagVote, RejectsPredictionsOrLabelsThatDoNotFit) {
    const std::vector<std::uint8_t> mask{1, 0};
    const auto alone = comm::make_self_communicator();
    const Rows rows{0.5F, 0.5F};
    const auto vote = [&](std::span<const float> probabilities, std::vector<std::int32_t> labels) {
        out_of_bag_vote(*alone, {mask, probabilities, 2}, labels);
    };
    EXPECT_NO_THROW(vote(rows, {0, 1}));
    EXPECT_THROW(vote({}, {0, 1}), Error);
    EXPECT_THROW(vote(rows, {0}), Error);
    EXPECT_THROW(vote(rows, {0, 2}), Error);
}

}  // namespace
}  // namespace hpcai::evaluation
