// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <limits>

#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::evaluation {

void cast_votes(Vote vote, std::span<const float> probabilities, std::span<float> votes,
                std::size_t classes) {
    if (vote == Vote::soft) {
        std::ranges::copy(probabilities, votes.begin());
        return;
    }
    std::ranges::fill(votes, 0.0F);
    for (std::size_t start = 0; start < votes.size(); start += classes) {
        const auto choice = predicted_class(probabilities.subspan(start, classes));
        if (choice) votes[start + static_cast<std::size_t>(*choice)] = 1.0F;
    }
}

void normalize_votes(Vote vote, std::span<float> votes, std::size_t classes, float member_count) {
    for (std::size_t start = 0; start < votes.size(); start += classes) {
        const std::span<float> row = votes.subspan(start, classes);
        const bool any =
            vote == Vote::soft || std::ranges::any_of(row, [](float count) { return count > 0; });
        for (float& count : row) {
            count = any ? count / member_count : std::numeric_limits<float>::quiet_NaN();
        }
    }
}

Ballot::Ballot(Vote vote, std::int64_t classes) : vote_(vote), classes_(classes) {
    ensure(classes > 0, "vote: expected 1 or more classes, got {}", classes);
}

void Ballot::add(std::span<const float> probabilities) {
    const auto width = static_cast<std::size_t>(classes_);
    if (members_ == 0) sums_.resize(probabilities.size());
    ensure(probabilities.size() == sums_.size() && sums_.size() % width == 0,
           "vote of {} classes: a member has {} probabilities, expected {}", classes_,
           probabilities.size(), sums_.size());
    std::vector<float> votes;
    if (vote_ == Vote::majority) {
        votes.resize(sums_.size());
        cast_votes(vote_, probabilities, votes, width);
        probabilities = votes;
    }
    std::ranges::transform(sums_, probabilities, sums_.begin(), std::plus<>());
    members_ += 1;
}

std::vector<float> Ballot::result() const {
    std::vector<float> result = sums_;
    normalize_votes(vote_, result, static_cast<std::size_t>(classes_), members_);
    return result;
}

}  // namespace hpcai::evaluation
