// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

/// Majority votes, in one process or over ranks.
namespace hpcai::evaluation {

/// Sets `votes` (samples, width) to 1 for the class that `probabilities` predict, else to 0. A row
/// with a NaN is all 0.
void cast_votes(std::span<const float> probabilities, std::span<float> votes, std::size_t width);

/// Divides sums of votes by the number of members; a row without a vote becomes all NaN.
void share_votes(std::span<float> votes, std::size_t width, float member_count);

}  // namespace hpcai::evaluation
