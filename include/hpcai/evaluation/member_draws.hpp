// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <hpcai/base/philox.hpp>

namespace hpcai::evaluation {

/// The members that the replicates of a bootstrap over members have. All draws are functions of the
/// seed.
struct MemberDraws {
    std::vector<std::vector<float>> weights;  // [different draw][member]: how often it is drawn
    std::vector<std::size_t> of_replicate;    // [replicate]: index of its weights
    std::uint64_t seed = 0;

    /// What chooses the test samples of a replicate.
    CounterStream samples_of(std::size_t replicate) const;
};

/// 1000 draws of as many members with replacement.
MemberDraws draw_members(int members, std::uint64_t seed);

}  // namespace hpcai::evaluation
