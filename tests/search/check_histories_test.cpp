// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/search/history.hpp>

#include "example_search.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::search {
namespace {

/// Two groups of two trials. Trial 1 of group 1 has seen both trials of group 0, whose trial 0 is
/// its parent.
std::vector<History> histories_with(const std::function<void(ProposedTrial&)>& change) {
    std::vector<History> histories;
    for (int group = 0; group < 2; ++group) {
        Chain chain(group);
        for (int sequence = 0; sequence < 2; ++sequence) {
            ProposedTrial proposed = proposed_trial(group, sequence);
            if (sequence == 1) proposed.edits = {{"wider", "a", "", 16}};
            if (group == 1 && sequence == 1) {
                proposed.seen[0] = 4;
                proposed.parent = {0, 1};
                proposed.edits.push_back({"wider", "b", "", 16});
                change(proposed);
            }
            chain.add(proposed);
            const bool fails = group == 1 && sequence == 0;
            chain.add(fails ? failed_trial(sequence) : finished_trial(sequence, 0.5));
        }
        histories.push_back(chain.history());
    }
    return histories;
}

std::string error_with(const std::function<void(ProposedTrial&)>& change) {
    const std::vector<History> histories = histories_with(change);
    const std::string message =
        storage::error_of(ExitCode::data, [&] { check_histories(histories); });
    EXPECT_NE(message.find("trials.jsonl, line 3"), std::string::npos) << message;
    return message;
}

TEST(CheckHistories, AcceptsASearch) {
    check_histories(histories_with([](ProposedTrial&) {}));
    check_histories(example_search(example_basis(ParentRule::evolution), 4, 80));
}

TEST(CheckHistories, FindsLinesThatDoNotExist) {
    const std::string message = error_with([](ProposedTrial& trial) { trial.seen[0] = 5; });
    EXPECT_NE(message.find("seen[0]: expected at most 4, got 5"), std::string::npos) << message;
}

TEST(CheckHistories, FindsAParentThatHadNotFinishedOrHasFailed) {
    const auto find = [](const std::string& text,
                         const std::function<void(ProposedTrial&)>& change) {
        const std::string message = error_with(change);
        EXPECT_NE(message.find(text), std::string::npos) << message;
    };
    find("had not finished", [](ProposedTrial& trial) { trial.seen[0] = 3; });
    find("had not finished", [](ProposedTrial& trial) { trial.parent = {1, 1}; });
    find("had not finished", [](ProposedTrial& trial) { trial.parent = {7, 0}; });
    find("has failed", [](ProposedTrial& trial) { trial.parent = {1, 0}; });
}

TEST(CheckHistories, FindsAChildWithoutItsParentsEdits) {
    const std::string message = error_with([](ProposedTrial& trial) { trial.edits.clear(); });
    EXPECT_NE(message.find("edits"), std::string::npos) << message;
    error_with([](ProposedTrial& trial) { trial.edits[0].amount = 32; });
}

TEST(CheckHistories, FindsWeightsThatCannotBeMissing) {
    const std::vector<std::vector<TrialId>> wrong{{{1, 1}}, {{0, 2}}, {{7, 0}}, {{0, 0}, {0, 0}}};
    for (const std::vector<TrialId>& missing : wrong) {
        const std::string message =
            error_with([&](ProposedTrial& trial) { trial.missing = missing; });
        EXPECT_NE(message.find("missing"), std::string::npos) << message;
    }
    check_histories(histories_with([](ProposedTrial& trial) { trial.missing = {{0, 0}}; }));
}

TEST(CheckHistories, FindsThreeTrialsThatHaveSeenEachOtherInACircle) {
    std::vector<History> histories;
    for (int group = 0; group < 3; ++group) {
        Chain chain(group);
        ProposedTrial trial = proposed_trial(group, 0, 3);
        trial.seen[static_cast<std::size_t>((group + 1) % 3)] = 1;
        chain.add(trial);
        histories.push_back(chain.history());
    }
    const std::string message =
        storage::error_of(ExitCode::data, [&] { check_histories(histories); });
    EXPECT_NE(message.find("depends on this one"), std::string::npos) << message;
    histories.pop_back();
    Chain last(2);
    last.add(proposed_trial(2, 0, 3));
    histories.push_back(last.history());
    check_histories(histories);  // the last has seen no other
}

TEST(CheckHistories, FindsTwoTrialsThatHaveSeenEachOther) {
    std::vector<History> histories;
    for (int group = 0; group < 2; ++group) {
        Chain chain(group);
        ProposedTrial trial = proposed_trial(group, 0);
        trial.seen[static_cast<std::size_t>(1 - group)] = 1;
        chain.add(trial);
        histories.push_back(chain.history());
    }
    const std::string message =
        storage::error_of(ExitCode::data, [&] { check_histories(histories); });
    EXPECT_NE(message.find("depends on this one"), std::string::npos) << message;
}

}  // namespace
}  // namespace hpcai::search
