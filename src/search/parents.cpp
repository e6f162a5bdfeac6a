// SPDX-License-Identifier: Apache-2.0
#include "parents.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace hpcai::search {

std::vector<Completed> completed_trials(std::span<const SeenTrial> trials,
                                        std::span<const TrialId> missing, std::size_t newest) {
    std::vector<Completed> completed;
    for (const SeenTrial& seen : trials) {
        if (!seen.accuracy) continue;
        const bool is_missing = std::ranges::find(missing, seen.id) != missing.end();
        completed.push_back({seen.id, *seen.accuracy, seen.trial->proposed.edits, is_missing});
    }
    if (completed.size() > newest) {
        completed.erase(completed.begin(), completed.end() - static_cast<std::ptrdiff_t>(newest));
    }
    return completed;
}

std::optional<std::size_t> tournament_winner(std::span<const Completed> population, int tournament,
                                             CounterStream& draws) {
    std::vector<std::size_t> order(population.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t drawn = std::min(order.size(), static_cast<std::size_t>(tournament));
    std::optional<std::size_t> winner;
    const auto rank = [&](std::size_t index) {
        return std::pair(-population[index].accuracy, index);
    };
    for (std::size_t i = 0; i < drawn; ++i) {
        std::swap(order[i], order[i + draws.below(static_cast<std::uint32_t>(order.size() - i))]);
        if (population[order[i]].is_missing) continue;
        if (!winner || rank(order[i]) < rank(*winner)) winner = order[i];
    }
    return winner;
}

std::optional<std::size_t> random_parent(std::span<const Completed> population,
                                         CounterStream& draws) {
    std::vector<std::optional<std::size_t>> candidates{std::nullopt};
    for (std::size_t index = 0; index < population.size(); ++index) {
        if (!population[index].is_missing) candidates.emplace_back(index);
    }
    return candidates[draws.below(static_cast<std::uint32_t>(candidates.size()))];
}

}  // namespace hpcai::search
