// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hpcai::evaluation {

enum class Vote { soft, majority };

/// Sets `votes` (samples, classes) to `probabilities` in a soft vote. In a majority vote, each
/// row is 1 for the class that `probabilities` predict, else 0; a row with a NaN is all 0.
void cast_votes(Vote vote, std::span<const float> probabilities, std::span<float> votes,
                std::size_t classes);

/// Divides sums of votes by `member_count`. In a majority vote, a row without votes becomes NaN.
void normalize_votes(Vote vote, std::span<float> votes, std::size_t classes, float member_count);

/// A vote in one process; ensemble.hpp has the votes over ranks. Members are added one by one, so
/// memory holds only one member and the sum. Sums are in fp32, in the order of the calls.
class Ballot {
public:
    Ballot(Vote vote, std::int64_t classes);

    /// Adds a member's `probabilities` (samples, classes). Throws Error(internal) for another size.
    void add(std::span<const float> probabilities);

    /// Returns (samples, classes): the mean probabilities, or the fraction of members that
    /// predict each class, like ensemble_vote(). Empty before the first member.
    std::vector<float> result() const;

private:
    Vote vote_;
    std::int64_t classes_;
    float members_ = 0;
    std::vector<float> sums_;
};

}  // namespace hpcai::evaluation
