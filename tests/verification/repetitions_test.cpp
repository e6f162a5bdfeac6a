// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/evaluation/statistics.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/derive.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "report/example_record.hpp"
#include "storage/temporary_folder.hpp"

namespace hpcai::verification {
namespace {

using storage::error_of;

/// Returns runs with these VFLOPS; 0: a run without VFLOPS.
RepetitionsRecord runs_of(const std::vector<double>& vflops) {
    RepetitionsRecord record;
    record.requested = static_cast<int>(vflops.size());
    for (const double value : vflops) {
        RunRecord run = report::example_record();
        run.scores.vflops = value > 0 ? Quantity{value, ""} : no_value("none");
        const int number = static_cast<int>(record.repetitions.size()) + 1;
        record.repetitions.push_back(describe_repetition(number, run, std::string(64, 'a')));
    }
    return record;
}

TEST(Repetitions, HaveMedianExtremesAndTheMedianDeviation) {
    RepetitionsRecord record = runs_of({5, 1, 2, 100});
    derive_repetitions(record);
    EXPECT_EQ(record.vflops.median.value, 3.5);
    EXPECT_EQ(record.vflops.minimum.value, 1);
    EXPECT_EQ(record.vflops.maximum.value, 100);
    EXPECT_EQ(record.vflops.median_absolute_deviation.value, 2) << "of 1.5, 1.5, 2.5 and 96.5";
    EXPECT_EQ(record.training_seconds.median.value, 16);
    EXPECT_EQ(record.training_seconds.median_absolute_deviation.value, 0);
    EXPECT_EQ(record.exit_code, ExitCode::ok);
}

TEST(Repetitions, AreRepresentedByTheRunWithTheMedianVflops) {
    EXPECT_EQ(report::median_repetition(runs_of({5, 1, 2})), 2U);
    EXPECT_EQ(report::median_repetition(runs_of({5, 1, 2, 100})), 2U) << "the lower of two";
    EXPECT_EQ(report::median_repetition(runs_of({0, 0, 7})), 2U);
    EXPECT_EQ(report::median_repetition(runs_of({0, 0})), 0U);
}

TEST(Repetitions, OmitRunsWithAFailedGroup) {
    RepetitionsRecord record = runs_of({4, 6});
    RunRecord partial = report::partial_record();
    partial.scores.vflops = {1000, ""};
    record.repetitions.push_back(describe_repetition(3, partial, ""));
    derive_repetitions(record);
    EXPECT_FALSE(record.repetitions[2].counted);
    EXPECT_EQ(record.vflops.maximum.value, 6);
    EXPECT_EQ(record.exit_code, ExitCode::partial);
    EXPECT_EQ(report::median_repetition(record), 0U);
}

TEST(Repetitions, EndWithTheWorstExitCode) {
    const std::vector<ExitCode> from_good_to_bad{
        ExitCode::ok,   ExitCode::partial,           ExitCode::invalid,
        ExitCode::data, ExitCode::all_groups_failed, ExitCode::internal};
    for (std::size_t worse = 1; worse < from_good_to_bad.size(); ++worse) {
        RepetitionsRecord record = runs_of({4, 6});
        record.repetitions[0].exit_code = from_good_to_bad[worse];
        record.repetitions[1].exit_code = from_good_to_bad[worse - 1];
        derive_repetitions(record);
        EXPECT_EQ(record.exit_code, from_good_to_bad[worse]);
    }
}

TEST(Repetitions, HaveNoMedianIfNoRunIsComplete) {
    RepetitionsRecord record = runs_of({});
    record.repetitions.push_back(describe_repetition(1, report::lost_record(), ""));
    derive_repetitions(record);
    EXPECT_FALSE(record.vflops.median.value);
    EXPECT_FALSE(record.vflops.median.reason.empty());
}

TEST(Repetitions, AreReadBackFromTheirFile) {
    RepetitionsRecord record = runs_of({5, 1, 2});
    record.name = "example";
    derive_repetitions(record);
    const storage::TemporaryFolder folder;
    EXPECT_FALSE(has_repetitions(folder.path()));
    storage::write_file_durably(folder / kRepetitionsName, records::to_json(record));
    EXPECT_TRUE(has_repetitions(folder.path()));
    EXPECT_EQ(read_repetitions(folder.path()), record);
    record.repetitions[1].directory = "../../etc";
    storage::write_file_durably(folder / kRepetitionsName, records::to_json(record));
    const std::string message = error_of(ExitCode::data, [&] { read_repetitions(folder.path()); });
    EXPECT_NE(message.find("repetitions[1].directory"), std::string::npos) << message;
    record.repetitions.clear();
    storage::write_file_durably(folder / kRepetitionsName, records::to_json(record));
    EXPECT_NE(error_of(ExitCode::data, [&] { read_repetitions(folder.path()); }).find("has no run"),
              std::string::npos);
}

TEST(Repetitions, ArePrintedRunByRunWithTheirMediansAndTheMedianRun) {
    RepetitionsRecord record = runs_of({5e9, 1e9, 2e9});
    record.requested = 4;
    record.stopped = "repetition 4 has not ended";
    record.name = "bad\nname";
    record.repetitions[2].flops = {6.5e10, ""};
    record.repetitions[2].quality = {0.625, ""};
    record.repetitions[0].seed = 9'007'199'254'740'991;
    derive_repetitions(record);
    const std::string text = report::repetitions_table(record, "abc");
    EXPECT_NE(text.find("\n" + std::string(80, '-') + "\n"), std::string::npos) << text;
    const auto row = text.find("\nrepetition_1 ");
    EXPECT_EQ(text.find('\n', row + 1) - row - 1, 80U) << text;
    EXPECT_NE(text.find("repetition_2"), std::string::npos);
    EXPECT_NE(text.find("\nreason: repetition 4 has not ended\n"), std::string::npos) << text;
    EXPECT_EQ(text.find("bad\nname"), std::string::npos);
    EXPECT_TRUE(
        text.ends_with("\nREPETITIONS 3 of 4  FLOPS=6.500e+10 VFLOPS=2.000e+09 "
                       "quality=0.6250 sha256=abc\n"))
        << text;
}

TEST(RankSum, HasTheExactPValue) {
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({1, 2, 3}, {4, 5, 6}), 0.1);
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({4, 5, 6}, {1, 2, 3}), 0.1);
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({1, 2, 3, 4}, {5, 6, 7, 8}), 2.0 / 70);
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({1, 3}, {2, 4}), 4.0 / 6);
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({1}, {2}), 1);
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({7, 7, 7}, {7, 7}), 1);
    EXPECT_DOUBLE_EQ(evaluation::rank_sum_p({1, 1, 1}, {2, 2, 2}), 0.1)
        << "ties within a set change nothing";
}

}  // namespace
}  // namespace hpcai::verification
