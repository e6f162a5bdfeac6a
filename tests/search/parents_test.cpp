// SPDX-License-Identifier: Apache-2.0
#include "search/parents.hpp"

#include <cmath>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "example_search.hpp"
#include "support/chi_square.hpp"

namespace hpcai::search {
namespace {

std::vector<Completed> population_of(const std::vector<double>& accuracies) {
    std::vector<Completed> population;
    for (const double accuracy : accuracies) {
        population.push_back({{0, static_cast<int>(population.size())}, accuracy, {}, false});
    }
    return population;
}

double combinations(int n, int k) {
    return k > n ? 0 : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1));
}

TEST(TournamentWinner, HasTheProbabilityOfItsRank) {
    // Accuracies 0.01 (5 i mod 13): the order of ranks is not that of the trials.
    constexpr int kTrials = 12, kDrawn = 4, kTournaments = 40000;
    std::vector<double> accuracies;
    for (int i = 1; i <= kTrials; ++i) accuracies.push_back(0.01 * (5 * i % 13));
    const std::vector<Completed> population = population_of(accuracies);
    std::vector<double> wins(kTrials + 1);
    for (std::uint32_t i = 0; i < kTournaments; ++i) {
        CounterStream draws(9, RandomPurpose::test, i);
        const auto winner = tournament_winner(population, kDrawn, draws);
        ASSERT_TRUE(winner);
        wins[static_cast<std::size_t>(kTrials - 5 * static_cast<int>(*winner + 1) % 13 + 1)] += 1;
    }
    std::vector<double> seen, expected;
    for (int rank = 1; rank <= kTrials; ++rank) {
        const double share =
            combinations(kTrials - rank, kDrawn - 1) / combinations(kTrials, kDrawn);
        if (share == 0) {
            EXPECT_EQ(wins[static_cast<std::size_t>(rank)], 0) << rank;
            continue;
        }
        seen.push_back(wins[static_cast<std::size_t>(rank)]);
        expected.push_back(share * kTournaments);
    }
    EXPECT_LT(tests::chi_square_ratio(seen, expected, 8), 1);
}

TEST(TournamentWinner, IsTheBestOfASmallPopulation) {
    CounterStream draws(1, RandomPurpose::test);
    EXPECT_EQ(tournament_winner(population_of({0.2, 0.7, 0.7, 0.1}), 10, draws), 1);
    EXPECT_EQ(tournament_winner({}, 10, draws), std::nullopt);
}

TEST(TournamentWinner, TakesTheNextIfWeightsAreMissing) {
    auto population = population_of({0.2, 0.9, 0.7, 0.1});
    population[1].is_missing = true;
    CounterStream draws(1, RandomPurpose::test);
    EXPECT_EQ(tournament_winner(population, 10, draws), 2);
    for (Completed& trial : population) trial.is_missing = true;
    EXPECT_EQ(tournament_winner(population, 10, draws), std::nullopt);
}

TEST(RandomParent, IsUniformAmongTrialsAndRoot) {
    std::vector<Completed> population = population_of({0.1, 0.9, 0.5, 0.4, 0.3});
    population[2].is_missing = true;
    std::vector<double> seen(5);  // the root, then the trials with weights
    for (std::uint32_t i = 0; i < 20000; ++i) {
        CounterStream draws(2, RandomPurpose::test, i);
        const auto parent = random_parent(population, draws);
        ASSERT_NE(parent, 2);
        seen[!parent ? 0 : *parent + (*parent < 2 ? 1 : 0)] += 1;
    }
    EXPECT_LT(tests::chi_square_ratio(seen, std::vector<double>(5, 4000), 4), 1);
}

TEST(CompletedTrials, AreTheNewestThatHaveNotFailed) {
    const auto histories = example_search(example_basis(ParentRule::random), 3, 60);
    const auto seen = seen_trials(pointers_to(histories), lines_of(histories));
    const auto all = completed_trials(seen, {}, 1000);
    ASSERT_GT(all.size(), 12);
    EXPECT_LT(all.size(), seen.size());  // some have failed
    const std::vector<TrialId> missing{all.back().id};
    const auto newest = completed_trials(seen, missing, 5);
    ASSERT_EQ(newest.size(), 5);
    EXPECT_TRUE(newest.back().is_missing);
    for (std::size_t i = 0; i < 5; ++i) EXPECT_EQ(newest[i].id, all[all.size() - 5 + i].id);
}

}  // namespace
}  // namespace hpcai::search
