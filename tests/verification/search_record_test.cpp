// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/verification/search.hpp>

namespace hpcai::verification {
namespace {

/// Appends a trial of two epochs of 10 samples and 4 of the hold-out, which ends after `end`.
void append(search::History& history, double accuracy, double end) {
    const int sequence = static_cast<int>(history.trials().size());
    ProposedTrial proposed;
    proposed.previous = history.last_sha256();
    proposed.sequence = sequence;
    proposed.seen = {0, 0};
    proposed.seen[static_cast<std::size_t>(history.group())] = history.lines();
    if (sequence > 0) proposed.parent = {history.group(), sequence - 1};
    for (int edit = 0; edit < sequence; ++edit)
        proposed.edits.push_back({"kernel", "conv1", "", 9 + 2 * edit});
    history.add_line(records::to_json_line(proposed));
    FinishedTrial finished;
    finished.previous = history.last_sha256();
    finished.sequence = sequence;
    finished.accuracy = {0.25, accuracy};
    finished.epoch_seconds = {end - 1, end};
    finished.begin_seconds = end - 2;
    finished.end_seconds = end + 0.5;
    finished.proposing_seconds = 0.125;
    finished.building_seconds = 0.25;
    finished.training_seconds = 1;
    finished.evaluating_seconds = 0.5;
    finished.samples_trained = 20;
    finished.samples_evaluated = 8;
    finished.flops = {{"table3", 30, 10}, {"two_mac", 28, 9}, {"aiperf", 40, 12}};
    finished.digest = std::string(64, 'd');
    history.add_line(records::to_json_line(finished));
}

constexpr double kWork = 20 * 40 + 8 * 12;  // of one trial

TEST(SearchRecord, DescribesAGroupByItsFinishedTrials) {
    search::History history(1, "trials");
    append(history, 0.5, 2);
    append(history, 0.75, 5);
    append(history, 0.75, 8);
    const GroupSearchRecord record = describe_search(history);
    EXPECT_EQ(record.trials, 3);
    EXPECT_EQ(record.best, 1);  // the first of equal ones
    EXPECT_EQ(record.best_accuracy, 0.75);
    EXPECT_EQ(record.best_epochs, 2);
    EXPECT_EQ(record.edits.size(), 1U);
    EXPECT_EQ(record.work, 3 * kWork);
    EXPECT_EQ(record.training_flops, 3 * 20 * 30);
    EXPECT_EQ(record.seconds, 8);
    EXPECT_EQ(record.spent, (SearchSeconds{0.375, 0.75, 3, 1.5, 8.5 - 5.625}));
    EXPECT_EQ(record.history_sha256, history.last_sha256());
}

/// Appends a trial like TrialProposals::fail().
void append_failed(search::History& history, double end_seconds) {
    ProposedTrial proposed;
    proposed.previous = history.last_sha256();
    proposed.sequence = static_cast<int>(history.trials().size());
    proposed.seen = {0, 0};
    proposed.seen[static_cast<std::size_t>(history.group())] = history.lines();
    history.add_line(records::to_json_line(proposed));
    FinishedTrial failed;
    failed.previous = history.last_sha256();
    failed.sequence = proposed.sequence;
    failed.state = TrialState::failed;
    failed.end_seconds = end_seconds;
    history.add_line(records::to_json_line(failed));
}

TEST(SearchRecord, NeedsATrialThatHasCompleted) {
    search::History history(0, "trials");
    EXPECT_THROW(best_trial(history), Error);
    append_failed(history, 1);
    EXPECT_THROW(best_trial(history), Error);
    append(history, 0, 2);
    EXPECT_EQ(describe_search(history).seconds, 2);
    append_failed(history, 3);
    EXPECT_EQ(best_trial(history), 1);
    EXPECT_EQ(describe_search(history).trials, 1);
    EXPECT_EQ(describe_search(history).seconds, 3) << "failures at the end cost time, too";
}

/// seconds x 100 / 100 is less than seconds for some values.
TEST(SearchRecord, EndsTheCurveWithTheTotals) {
    int rounded = 0;
    for (int i = 1; i <= 200; ++i) {
        const double end = 2 + 1.1 * i / 7;
        rounded += end * 100 / 100 < end ? 1 : 0;
        search::History history(0, "trials");
        append(history, 0.5, end);
        const search::History* const members[] = {&history};
        const SearchRecord record = derive_search(members, 4);
        const SearchPoint& last = record.curve.back();
        EXPECT_EQ(last.seconds, record.seconds);
        EXPECT_EQ(last.ops, record.ops);
        EXPECT_EQ(last.regulated, record.regulated);
        EXPECT_EQ(last.trials, record.trials);
        EXPECT_EQ(last.best_accuracy, record.best_accuracy);
    }
    EXPECT_GT(rounded, 0);
}

TEST(SearchRecord, AddsTheGroupsAndFollowsThemOverTime) {
    search::History first(0, "first"), second(1, "second");
    append(first, 0.5, 4);
    append(second, 0.25, 5);
    append(second, 0.875, 10);
    const search::History* const members[] = {&first, &second};
    const SearchRecord record = derive_search(members, 4);
    EXPECT_EQ(record.trials, 3);
    EXPECT_EQ(record.hold_out_samples, 4);
    EXPECT_EQ(record.seconds, 10);
    EXPECT_EQ(record.work, 3 * kWork);
    EXPECT_EQ(record.ops, 3 * kWork / 10);
    EXPECT_EQ(record.best, (TrialId{1, 1}));
    EXPECT_DOUBLE_EQ(record.regulated, 3 * kWork / 10 * std::log(8.0));
    ASSERT_EQ(record.curve.size(), 100U);
    const SearchPoint& middle = record.curve[49];  // after 5 s: two trials
    EXPECT_EQ(middle.seconds, 5);
    EXPECT_EQ(middle.trials, 2);
    EXPECT_DOUBLE_EQ(middle.ops, 2 * kWork / 5);
    EXPECT_EQ(middle.best_accuracy, 0.5);
    EXPECT_DOUBLE_EQ(record.stability, (2 * kWork / 5) / (3 * kWork / 10) - 1);
    ASSERT_EQ(record.family.size(), 3U);
    EXPECT_EQ(record.family[1].id, (TrialId{1, 0}));
    EXPECT_EQ(record.family[2].parent, (TrialId{1, 0}));
    EXPECT_EQ(record.family[2].edit, "kernel");
}

}  // namespace
}  // namespace hpcai::verification
