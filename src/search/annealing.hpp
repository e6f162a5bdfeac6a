// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/graph/graph.hpp>

#include "parents.hpp"

namespace hpcai::search {

/// Most morphs that anneal() adds to a parent: one for each temperature.
inline constexpr std::size_t kMostAnnealedMorphs = 14;

/// The child with the largest upper confidence bound that simulated annealing has found.
struct BestChild {
    std::size_t parent = 0;         // index in the population
    std::vector<EditRecord> edits;  // the parent's and those after them
};

/// Proposes a child as AIPerf does: a Gaussian process over edit distances predicts the accuracy of
/// graphs. A priority queue begins with the population; while the temperature, at first 1, is above
/// 1e-4, the best graph leaves the queue, enters into eight children of one morph each with
/// probability min(1, exp((value - best) / temperature)), and the temperature halves. A child's
/// value is mean + 2.576 deviations; children that equal a known graph are left out. Unlike AIPerf,
/// the process trains and predicts with one covariance, and accuracies have mean 0 and deviation 1.
/// Descendants of trials without weights are not proposed. Returns nothing if there is no child.
/// `has_plain` as for draw_morph().
std::optional<BestChild> anneal(const graph::Graph& root, std::span<const Completed> population,
                                CounterStream& draws, bool has_plain = false);

}  // namespace hpcai::search
