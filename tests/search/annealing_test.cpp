// SPDX-License-Identifier: Apache-2.0
#include "search/annealing.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "example_search.hpp"
#include "search/edit_distance.hpp"

namespace hpcai::search {
namespace {

struct Population {
    std::vector<History> histories;
    std::vector<Completed> completed;
};

Population example_population(const Basis& basis) {
    Population population{example_search(basis, 2, 40), {}};
    population.completed = completed_trials(
        seen_trials(pointers_to(population.histories), lines_of(population.histories)), {}, 100);
    return population;
}

TEST(Anneal, ProposesANewGraphThatDescendsFromItsParent) {
    const Basis basis = example_basis(ParentRule::evolution);
    const Population population = example_population(basis);
    for (std::uint32_t number = 0; number < 5; ++number) {
        CounterStream draws(1, RandomPurpose::test, number);
        const auto best = anneal(basis.root, population.completed, draws);
        ASSERT_TRUE(best);
        const auto inherited = population.completed.at(best->parent).edits;
        ASSERT_GT(best->edits.size(), inherited.size());
        EXPECT_TRUE(std::equal(inherited.begin(), inherited.end(), best->edits.begin()));
        const auto child = describe(morphs::apply_all(basis.root, morphs_of(best->edits)));
        for (const Completed& trial : population.completed) {
            const auto known = describe(morphs::apply_all(basis.root, morphs_of(trial.edits)));
            EXPECT_GT(edit_distance(child, known), 1e-5);
        }
    }
}

TEST(Anneal, PrefersDescendantsOfAccurateTrials) {
    const Basis basis = example_basis(ParentRule::evolution);
    Population population = example_population(basis);
    ASSERT_GE(population.completed.size(), 10);
    population.completed.resize(10);
    for (std::size_t i = 0; i < 10; ++i) population.completed[i].accuracy = i == 6 ? 0.9 : 0.1;
    int best = 0, worst = 0;
    for (std::uint32_t number = 0; number < 20; ++number) {
        CounterStream draws(2, RandomPurpose::test, number);
        const auto child = anneal(basis.root, population.completed, draws);
        ASSERT_TRUE(child);
        ++(child->parent == 6 ? best : worst);
    }
    EXPECT_GT(best, worst / 2);  // by chance, a ninth
}

TEST(Anneal, NeedsAParentWithWeights) {
    const Basis basis = example_basis(ParentRule::evolution);
    Population population = example_population(basis);
    CounterStream draws(3, RandomPurpose::test);
    EXPECT_FALSE(anneal(basis.root, {}, draws));
    for (Completed& trial : population.completed) trial.is_missing = true;
    EXPECT_FALSE(anneal(basis.root, population.completed, draws));
}

}  // namespace
}  // namespace hpcai::search
