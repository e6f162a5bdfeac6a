// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/search/history.hpp>

namespace hpcai::search {

/// A trial that may be a parent.
struct Completed {
    TrialId id;
    double accuracy = 0;
    std::span<const EditRecord> edits;
    bool is_missing = false;  // its weights are gone
};

/// Returns the completed trials in the order of `trials`; at most the last `newest`.
std::vector<Completed> completed_trials(std::span<const SeenTrial> trials,
                                        std::span<const TrialId> missing, std::size_t newest);

/// Aging evolution (Real et al. 2019): draws S = min(tournament, population.size()) trials without
/// replacement. Of those whose weights are not missing, returns the one with the highest accuracy,
/// in a tie the first in `population`; nothing if there is none. Without missing trials and ties,
/// the trial of rank r among n wins with probability C(n - r, S - 1) / C(n, S).
std::optional<std::size_t> tournament_winner(std::span<const Completed> population, int tournament,
                                             CounterStream& draws);

/// Returns one of the trials whose weights are not missing, or nothing for the root; all have equal
/// probability.
std::optional<std::size_t> random_parent(std::span<const Completed> population,
                                         CounterStream& draws);

}  // namespace hpcai::search
