// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// Majority votes, in one process or over ranks.
namespace hpcai::evaluation {

/// Into `votes` (samples, width): 1 for the class that `probabilities` predict, else 0; all 0 for
/// a row with a NaN.
void cast_votes(std::span<const float> probabilities, std::span<float> votes, std::size_t width);

/// Divides sums of votes by the number of members; a row without a vote becomes all NaN.
void share_votes(std::span<float> votes, std::size_t width, float member_count);

}  // namespace hpcai::evaluation
