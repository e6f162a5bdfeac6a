// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/ensemble.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"
#include "thread_communicator.hpp"

/// Votes of five members against NumPy (scripts/reference/metric_cases.py), in every order of the
/// members.
namespace hpcai::evaluation {
namespace {

using nlohmann::json;
using Rows = std::vector<float>;

class VotesOfFive : public testing::Test {
protected:
    using Vote = std::function<Rows(comm::Communicator&, const Rows&)>;

    /// The result of rank 0 if member order[r] votes as rank r.
    static Rows result_of(const std::vector<Rows>& members, const std::vector<std::size_t>& order,
                          const Vote& vote) {
        Rows result;
        run_members(static_cast<int>(order.size()), [&](comm::Communicator& ranks) {
            const auto rank = static_cast<std::size_t>(ranks.rank());
            Rows mine = vote(ranks, members[order[rank]]);
            if (rank == 0) result = std::move(mine);
        });
        return result;
    }

    /// Calls body(order) for all 120 orders.
    static void for_each_order(const std::function<void(const std::vector<std::size_t>&)>& body) {
        std::vector<std::size_t> order{0, 1, 2, 3, 4};
        do body(order);
        while (std::ranges::next_permutation(order).found);
    }

    OutOfBagQuality out_of_bag(const std::vector<std::size_t>& order) const {
        const std::vector<std::int32_t> labels = votes_["labels"];
        OutOfBagQuality quality;
        run_members(static_cast<int>(order.size()), [&](comm::Communicator& ranks) {
            const std::size_t member = order[static_cast<std::size_t>(ranks.rank())];
            const std::vector<std::uint8_t> mask = votes_["out_of_bag"][member];
            Rows packed;
            for (std::size_t sample = 0; sample < mask.size(); ++sample) {
                if (mask[sample] == 0) continue;
                const auto row =
                    members_[member].begin() + static_cast<std::ptrdiff_t>(sample) * classes_;
                packed.insert(packed.end(), row, row + classes_);
            }
            const auto got = out_of_bag_vote(ranks, {mask, packed, classes_}, labels, 16);
            if (ranks.rank() == 0) quality = got;
        });
        return quality;
    }

    Vote soft_ = [this](comm::Communicator& ranks, const Rows& mine) {
        return ensemble_vote(ranks, evaluation::Vote::soft, mine, classes_, 16);
    };
    Vote majority_ = [this](comm::Communicator& ranks, const Rows& mine) {
        return ensemble_vote(ranks, evaluation::Vote::majority, mine, classes_, 16);
    };

    const json votes_ = tests::read_reference_json("metrics_evaluation.json")["votes"];
    const std::vector<Rows> members_ = votes_["members"];
    const std::int64_t classes_ = votes_["classes"];
};

TEST_F(VotesOfFive, SoftAgreesWithNumPyInEveryOrderOfTheMembers) {
    // fp32: four sums and a quotient of numbers up to 1; orders differ by rounding
    tests::LargestError error("soft vote of five in every order, fp32", 1.2e-7);
    const std::vector<double> want = votes_["soft_vote"];
    for_each_order([&](const std::vector<std::size_t>& order) {
        const Rows got = result_of(members_, order, soft_);
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
            error.add(std::abs(got[i] - want[i]), fmt::format("element {}", i));
        }
    });
}

TEST_F(VotesOfFive, SoftIsBitwiseTheSameInEveryOrderWhereSumsAreExact) {
    std::vector<Rows> members = members_;
    for (Rows& rows : members) {
        for (float& value : rows) value = std::round(value * 1024) / 1024;
    }
    tests::LargestError error("soft votes of multiples of 2^-10 that differ between orders", 0);
    const Rows first = result_of(members, {0, 1, 2, 3, 4}, soft_);
    for_each_order([&](const std::vector<std::size_t>& order) {
        error.add(result_of(members, order, soft_) != first);
    });
}

TEST_F(VotesOfFive, MajorityAgreesWithNumPyBitwiseInEveryOrderOfTheMembers) {
    tests::LargestError error("majority votes of five in every order that differ from NumPy", 0);
    Rows want;
    for (const json& share : votes_["majority"]) want.push_back(share);
    for_each_order([&](const std::vector<std::size_t>& order) {
        error.add(result_of(members_, order, majority_) != want);
    });
}

TEST_F(VotesOfFive, InOneProcessAreThoseOverRanks) {
    tests::LargestError error("votes in one process that differ from those over ranks", 0);
    for (const bool soft : {true, false}) {
        Ballot ballot(soft ? evaluation::Vote::soft : evaluation::Vote::majority, classes_);
        EXPECT_TRUE(ballot.result().empty());
        for (const Rows& member : members_) ballot.add(member);
        error.add(ballot.result() !=
                  result_of(members_, {0, 1, 2, 3, 4}, soft ? soft_ : majority_));
        EXPECT_THROW(ballot.add(std::span(members_[0]).first(7)), Error);
    }
}

TEST_F(VotesOfFive, OutOfBagAgreesWithNumPyInEveryOrderOfTheMembers) {
    tests::LargestError error("out-of-bag counts of five in every order that differ from NumPy", 0);
    const json& quality = votes_["out_of_bag_quality"];
    const OutOfBagQuality want{{quality["correct_1"], quality["correct_5"], quality["counted"]},
                               quality["covered"]};
    for_each_order(
        [&](const std::vector<std::size_t>& order) { error.add(out_of_bag(order) != want); });
}

}  // namespace
}  // namespace hpcai::evaluation
