// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hpcai::evaluation {

enum class Vote { soft, majority };

/// A vote in one process (ensemble.hpp has the same over ranks): members are added one after the
/// other, so that memory holds one besides the sum. Sums are in fp32, in the order of adding.
class Ballot {
public:
    /// Begins a vote on so many classes.
    Ballot(Vote vote, std::int64_t classes);

    /// One member's `probabilities` (samples, classes). Throws Error(internal) when it has not as
    /// many as the first.
    void add(std::span<const float> probabilities);

    /// (samples, classes): the mean of the members, or the share of the members that predict the
    /// class, as ensemble_soft_vote and ensemble_majority have it; empty before the first member.
    std::vector<float> result() const;

private:
    Vote vote_;
    std::int64_t classes_;
    float members_ = 0;
    std::vector<float> sums_;
};

}  // namespace hpcai::evaluation
