// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/search/proposal.hpp>

#include "example_search.hpp"
#include "search/parents.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::search {
namespace {

Request next_request(const std::vector<History>& histories, int group) {
    const History& history = histories[static_cast<std::size_t>(group)];
    return {group, static_cast<int>(history.lines() / 2), 0, {}, lines_of(histories)};
}

class EachParentRule : public ::testing::TestWithParam<ParentRule> {};
INSTANTIATE_TEST_SUITE_P(All, EachParentRule,
                         ::testing::Values(ParentRule::evolution, ParentRule::bayesian,
                                           ParentRule::random));

TEST_P(EachParentRule, ProposesWhatCanBeComputedAgain) {
    const Basis basis = example_basis(GetParam());
    const auto histories = example_search(basis, 3, 50);
    check_proposals(basis, histories);
    std::set<std::string> kinds;
    for (const History& history : histories) {
        ASSERT_FALSE(history.trials().empty());
        EXPECT_TRUE(history.trials()[0].proposed.edits.empty());  // the root
        for (const Trial& trial : history.trials()) {
            EXPECT_EQ(trial.proposed.edits.empty(), trial.proposed.sequence == 0);
            for (const EditRecord& edit : trial.proposed.edits) kinds.insert(edit.kind);
            morphs::apply_all(basis.root, morphs_of(trial.proposed.edits));
        }
    }
    EXPECT_GE(kinds.size(), GetParam() == ParentRule::bayesian ? 2 : 4);
}

TEST_P(EachParentRule, DependsOnSeedGroupAndDraw) {
    const Basis basis = example_basis(GetParam());
    const auto histories = example_search(basis, 2, 30);
    const Request request = next_request(histories, 0);
    const ProposedTrial trial = propose(basis, request, histories);
    EXPECT_EQ(propose(basis, request, histories), trial);
    Request other = request;
    other.draw = 1;
    const ProposedTrial redrawn = propose(basis, other, histories);
    EXPECT_NE(redrawn.edits, trial.edits);
    EXPECT_EQ(redrawn.draw, 1);
    EXPECT_NE(propose(example_basis(GetParam(), 8), request, histories).edits, trial.edits);
    EXPECT_NE(propose(basis, next_request(histories, 1), histories).edits, trial.edits);
}

TEST_P(EachParentRule, IgnoresLinesThatItHasNotSeen) {
    const Basis basis = example_basis(GetParam());
    const auto early = example_search(basis, 2, 30);
    const auto late = example_search(basis, 2, 44);
    for (int group = 0; group < 2; ++group) {
        const Request request = next_request(early, group);
        EXPECT_EQ(propose(basis, request, early), propose(basis, request, late));
    }
}

TEST_P(EachParentRule, StartsFromTheRootIfNoTrialHasCompleted) {
    const Basis basis = example_basis(GetParam());
    Chain chain(0);
    chain.add(proposed_trial(0, 0, 1));
    chain.add(failed_trial(0));
    const ProposedTrial trial = propose(basis, {0, 1, 0, {}, {2}}, {&chain.history(), 1});
    EXPECT_TRUE(trial.parent.is_root());
    EXPECT_EQ(trial.edits.size(), 1);
}

TEST_P(EachParentRule, HasItsParentsNetworkAfterTheLastDraw) {
    const Basis basis = example_basis(GetParam());
    const auto histories = example_search(basis, 2, 40);
    Request request = next_request(histories, 0);
    request.draw = basis.settings.max_draws - 1;
    std::size_t inherited = 0;
    const auto edits_of_parent = [&](const ProposedTrial& trial) {
        if (trial.parent.is_root()) return std::vector<EditRecord>{};
        ++inherited;
        return histories[static_cast<std::size_t>(trial.parent.group)]
            .trials()[static_cast<std::size_t>(trial.parent.sequence)]
            .proposed.edits;
    };
    const ProposedTrial before = propose(basis, request, histories);
    EXPECT_GT(before.edits.size(), edits_of_parent(before).size());
    for (inherited = 0; request.draw < basis.settings.max_draws + 10;) {
        ++request.draw;
        const ProposedTrial last = propose(basis, request, histories);
        EXPECT_EQ(last.edits, edits_of_parent(last));
        EXPECT_EQ(last.hyper_parameters.size(), 2);
    }
    EXPECT_GT(inherited, 0);
}

TEST_P(EachParentRule, ChoosesOnlyAmongTheNewestTrials) {
    Basis basis = example_basis(GetParam());
    basis.settings.population = 4;
    const auto histories = example_search(basis, 2, 50);
    Request request = next_request(histories, 0);
    const auto completed =
        completed_trials(seen_trials(pointers_to(histories), request.seen), {}, 4);
    ASSERT_EQ(completed.size(), 4);
    for (request.draw = 0; request.draw < 12; ++request.draw) {
        const TrialId parent = propose(basis, request, histories).parent;
        EXPECT_TRUE(parent.is_root() || std::ranges::count(completed, parent, &Completed::id) == 1);
    }
}

TEST_P(EachParentRule, ChoosesNoParentWithoutWeights) {
    const Basis basis = example_basis(GetParam());
    const auto histories = example_search(basis, 2, 30);
    Request request = next_request(histories, 0);
    std::set<TrialId> parents;
    for (;;) {
        const TrialId parent = propose(basis, request, histories).parent;
        if (parent.is_root()) break;
        ASSERT_TRUE(parents.insert(parent).second);
        request.missing.push_back(parent);
    }
    EXPECT_GE(parents.size(), GetParam() == ParentRule::random ? 1 : 10);
}

TEST(Propose, HasAParentAndOneMoreEditInEvolution) {
    const auto histories = example_search(example_basis(ParentRule::evolution), 2, 60);
    std::size_t children = 0;
    for (const History& history : histories) {
        for (const Trial& trial : history.trials()) {
            const TrialId parent = trial.proposed.parent;
            if (parent.is_root()) continue;
            const auto& inherited = histories[static_cast<std::size_t>(parent.group)]
                                        .trials()[static_cast<std::size_t>(parent.sequence)]
                                        .proposed.edits;
            EXPECT_EQ(trial.proposed.edits.size(), inherited.size() + 1);
            ++children;
        }
    }
    EXPECT_GT(children, 20);
}

TEST(Propose, InheritsHyperParametersUntilItDrawsThem) {
    const Basis basis = example_basis(ParentRule::evolution);
    const auto histories = example_search(basis, 2, 40);
    std::size_t drawn = 0;
    for (const History& history : histories) {
        for (const Trial& trial : history.trials()) {
            const auto& values = trial.proposed.hyper_parameters;
            ASSERT_EQ(values.size(), 2);
            EXPECT_EQ(values[0].name, "rate_factor");
            EXPECT_TRUE(values[0].value >= 0.5 && values[0].value <= 2);
            EXPECT_TRUE(trial.proposed.sequence > 0 || values[0].value == 1);
            drawn += trial.proposed.sequence >= 3 && values[0].value != 1;
            if (trial.proposed.sequence >= 3 || trial.proposed.parent.is_root()) continue;
            const TrialId parent = trial.proposed.parent;
            EXPECT_EQ(values, histories[static_cast<std::size_t>(parent.group)]
                                  .trials()[static_cast<std::size_t>(parent.sequence)]
                                  .proposed.hyper_parameters);
        }
    }
    EXPECT_GT(drawn, 10);
}

/// The histories with one proposal changed and the chain computed again.
std::vector<History> forged(const std::vector<History>& histories,
                            const std::function<void(ProposedTrial&)>& change) {
    std::vector<History> result;
    for (const History& history : histories) {
        Chain chain(history.group());
        for (const Trial& trial : history.trials()) {
            ProposedTrial proposed = trial.proposed;
            if (history.group() == 1 && proposed.sequence == 8) change(proposed);
            chain.add(proposed);
            if (trial.finished) chain.add(*trial.finished);
        }
        result.push_back(chain.history());
    }
    return result;
}

TEST(CheckProposals, FindsForgedProposals) {
    const Basis basis = example_basis(ParentRule::evolution);
    const auto histories = example_search(basis, 2, 50);
    ASSERT_GT(histories[1].trials().size(), 9);
    const std::vector<std::function<void(ProposedTrial&)>> changes{
        [](ProposedTrial& trial) { trial.edits.back().node += "x"; },
        [](ProposedTrial& trial) { trial.hyper_parameters[0].value *= 1 + 1e-6; },
        [](ProposedTrial& trial) {
            double& filters = trial.hyper_parameters[1].value;
            filters = filters == 8 ? 16 : 8;
        },
        [](ProposedTrial& trial) { trial.draw = 3; },
        [](ProposedTrial& trial) { trial.missing = {trial.parent}; },
    };
    for (const auto& change : changes) {
        const auto changed = forged(histories, change);
        const std::string message =
            storage::error_of(ExitCode::mismatch, [&] { check_proposals(basis, changed); });
        EXPECT_NE(message.find("trials.jsonl, line 17"), std::string::npos) << message;
    }
    check_proposals(basis, forged(histories, [](ProposedTrial&) {}));
}

TEST(CheckProposals, FindsImpossibleHyperParameters) {
    const Basis basis = example_basis(ParentRule::evolution);
    const auto histories = example_search(basis, 2, 50);
    const std::vector<std::function<void(ProposedTrial&)>> changes{
        [](ProposedTrial& trial) { trial.hyper_parameters[0].value = 2.1; },
        [](ProposedTrial& trial) { trial.hyper_parameters[0].name = "x"; },
        [](ProposedTrial& trial) { trial.hyper_parameters[1].value = 9; },
        [](ProposedTrial& trial) { trial.hyper_parameters.pop_back(); },
    };
    for (const auto& change : changes) {
        const auto changed = forged(histories, change);
        const std::string message =
            storage::error_of(ExitCode::data, [&] { check_proposals(basis, changed); });
        EXPECT_NE(message.find("trials.jsonl, line 17: hyper"), std::string::npos) << message;
    }
}

/// Otherwise verify would apply as many edits as a hostile line has.
TEST(CheckProposals, FindsTooManyEdits) {
    for (const auto& [parent, more] :
         {std::pair{ParentRule::evolution, 1}, {ParentRule::bayesian, 14}}) {
        const Basis basis = example_basis(parent);
        const auto changed = forged(example_search(basis, 2, 50), [&](ProposedTrial& trial) {
            trial.parent = {};
            trial.edits.assign(static_cast<std::size_t>(more + 1),
                               {"wider", "no such node", "", 2});
        });
        const std::string message =
            storage::error_of(ExitCode::data, [&] { check_proposals(basis, changed); });
        EXPECT_NE(message.find(fmt::format("edits: expected at most {}, got {}", more, more + 1)),
                  std::string::npos)
            << message;
    }
}

TEST(CheckProposals, AcceptsTheRoundingOfAnotherCLibrary) {
    const Basis basis = example_basis(ParentRule::evolution);
    const auto histories = example_search(basis, 2, 50);
    check_proposals(basis, forged(histories, [](ProposedTrial& trial) {
                        trial.hyper_parameters[0].value *= 1 + 1e-15;
                    }));
}

TEST(CheckProposals, FindsAFewerSeenLine) {
    const Basis basis = example_basis(ParentRule::evolution);
    const auto histories = example_search(basis, 2, 50);
    int found = 0;
    for (const History& history : histories) {
        for (const Trial& trial : history.trials()) {
            const std::size_t other = history.group() == 0 ? 1 : 0;
            Request request = request_of(history.group(), trial.proposed);
            if (request.seen[other] < 2) continue;
            request.seen[other] -= 2;
            ProposedTrial proposed = propose(basis, request, histories);
            proposed.seen = trial.proposed.seen;
            found += !has_same_proposal(proposed, trial.proposed);
        }
    }
    EXPECT_GT(found, 10);
}

TEST(MorphsOf, RejectsAnUnknownKind) {
    const std::vector<EditRecord> edits{{"narrower\n", "conv1", "", 4}};
    const std::string message = storage::error_of(ExitCode::data, [&] { morphs_of(edits); });
    EXPECT_NE(message.find("narrower\\n"), std::string::npos) << message;
}

}  // namespace
}  // namespace hpcai::search
