// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hpcai::config {

/// Returns the smallest number of insertions, deletions, substitutions and swaps of neighbours that
/// change `a` to `b`, ignoring case (Damerau-Levenshtein distance, optimal string alignment).
int edit_distance(std::string_view a, std::string_view b);

/// Returns the candidate nearest to `given`, at a distance of at most max(1, given.size() / 3);
/// else, if `given` has at least 3 bytes, the first candidate that begins with it, ignoring case.
/// Empty if there is neither, or if `given` has more than 64 bytes.
std::string nearest(std::string_view given, const std::vector<std::string>& candidates);

/// Returns the name of which `given` is a synonym in other programs ("cuda" for "gpu"), or `given`.
std::string_view resolve_synonym(std::string_view given);

/// Returns "; did you mean 'x'?" for the candidate of which `given` is a synonym, else for the
/// nearest candidate. Returns an empty string if no candidate is near.
std::string did_you_mean(std::string_view given, const std::vector<std::string>& candidates);

}  // namespace hpcai::config
