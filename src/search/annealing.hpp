// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/graph/graph.hpp>

#include "parents.hpp"

namespace hpcai::search {

/// The most morphs that anneal() adds to a parent: one for each temperature.
inline constexpr std::size_t kMaxAnnealedMorphs = 14;

/// The child with the largest upper confidence bound that simulated annealing has found.
struct BestChild {
    std::size_t parent = 0;         // index in the population
    std::vector<EditRecord> edits;  // the parent's, then the new ones
};

/// Proposes a child as AIPerf does: a Gaussian process over edit distances predicts the accuracy of
/// graphs. A priority queue begins with the population, whose values are the accuracies. Steps have
/// the temperatures 1, 1/2, 1/4 and so on, above 1e-4. A step removes the graph with the highest
/// value and, with probability min(1, exp((value - highest value of a child) / temperature)), adds
/// eight of its children, each with one morph more. A child's value is the predicted mean + 2.576
/// deviations. Children that equal a known graph are left out. Unlike AIPerf, the process trains
/// and predicts with one covariance function, and accuracies are shifted and scaled to mean 0 and
/// deviation 1. Descendants of trials without weights are not proposed. Returns nothing if there is
/// no child. `has_plain` is that of draw_morph().
std::optional<BestChild> anneal(const graph::Graph& root, std::span<const Completed> population,
                                CounterStream& draws, bool has_plain = false);

}  // namespace hpcai::search
