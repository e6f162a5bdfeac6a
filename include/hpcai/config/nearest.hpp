// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpcai::config {

/// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b`, capital
/// letters counting as small ones (Damerau-Levenshtein distance, optimal string alignment).
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `given`; empty when none is within a third of its letters (at least
/// one), or `given` has more than 64 bytes.
std::string nearest(std::string_view given, const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" for the candidate that is another name of `given` ("gpu" of "cuda"), else
/// for the nearest one, or nothing.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& candidates);

}  // namespace hpcai::config
