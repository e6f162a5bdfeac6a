// SPDX-License-Identifier: Apache-2.0
#include <regex>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <hpcai/verification/ranking.hpp>

#include "report/example_record.hpp"

namespace hpcai::verification {
namespace {

Submission submission(const std::string& name, double vflops) {
    RunRecord record = report::example_record();
    record.name = name;
    record.submission = {};
    record.scores.vflops.value = vflops;
    return {"results/" + name, record, true, "manifest of " + name};
}

Submission custom(const std::string& name, double vflops = 1e20) {
    Submission one = submission(name, vflops);
    one.record.verdict = {Status::custom, {"run.level is custom"}, ExitCode::ok, false, {}};
    return one;
}

TEST(Ranking, SortsByVflopsAndPutsResultsWithoutARankBelow) {
    const auto rankings = rank({custom("doll", 1e10), custom("toy"), submission("slow", 1e9),
                                submission("fast", 3e9), submission("twin", 3e9)});
    ASSERT_EQ(rankings.size(), 1U);
    const auto& rows = rankings.front().rows;
    ASSERT_EQ(rows.size(), 5U);
    EXPECT_EQ(rows[4].source, "doll") << "below by its VFLOPS, not by its name";
    EXPECT_EQ(rows[0].source, "fast");
    EXPECT_EQ(rows[0].rank, 1);
    EXPECT_EQ(rows[1].source, "twin");
    EXPECT_EQ(rows[1].rank, 1) << "of the same VFLOPS";
    EXPECT_EQ(rows[2].rank, 3);
    EXPECT_EQ(rows[3].source, "toy");
    EXPECT_EQ(rows[3].rank, 0);
    EXPECT_EQ(rows[3].note, "run.level is custom");
    EXPECT_EQ(rows[0].accelerators, "cpu * 4");
    EXPECT_NEAR(*rows[0].minutes.value, 16.0 / 60, 1e-12);
}

TEST(Ranking, NamesSystemAndOrganization) {
    Submission one = submission("run-17", 2);
    one.record.submission.system_name = "Abacus 2";
    EXPECT_EQ(rank({one}).front().rows.front().source, "Abacus 2");
    one.record.submission.organization = "University of Examples";
    const auto rankings = rank({one});
    EXPECT_EQ(rankings.front().rows.front().source, "Abacus 2, University of Examples");
    EXPECT_NE(to_csv(rankings).find(",\"Abacus 2, University of Examples\",Abacus 2,University of "
                                    "Examples,run-17,2001-02-03T04:05:06Z,2,"),
              std::string::npos)
        << to_csv(rankings);
}

TEST(Ranking, NeverMixesWorkloads) {
    Submission other = submission("weather", 1);
    other.record.workload.kind = "extreme_weather";
    const auto rankings = rank({submission("pictures", 2), other});
    ASSERT_EQ(rankings.size(), 2U);
    EXPECT_EQ(rankings[0].rows.front().rank, 1);
    EXPECT_EQ(rankings[1].rows.front().rank, 1);
}

TEST(Ranking, OrdersSearchesByRegulatedOps) {
    const auto search = [](const std::string& name, double vflops, double regulated) {
        Submission one = submission(name, vflops);
        one.record.workload.kind = kSearchKind;
        one.record.search = SearchRecord{.ops = 5e9, .regulated = regulated};
        return one;
    };
    const auto rankings = rank({search("slow", 2, 1e9), submission("pictures", 3),
                                search("fast", 1, 3e9), search("twin", 3, 3e9)});
    ASSERT_EQ(rankings.size(), 2U);
    const auto& rows = rankings[0].rows;
    EXPECT_EQ(rows[0].source, "fast");
    EXPECT_EQ(rows[1].rank, 1) << "of the same score";
    EXPECT_EQ(rows[2].source, "slow");
    const std::string text = to_text(rankings);
    EXPECT_NE(text.find("rank  regulated  OPS        accuracy  minutes"), std::string::npos)
        << text;
    EXPECT_NE(text.find("rank  VFLOPS"), std::string::npos) << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Ranking, TakesTheRunWithTheMedianScore) {
    RepetitionsRecord series;
    std::vector<Verification> runs(3);
    for (const double vflops : {1, 9, 2}) {
        RepetitionRecord& run = series.repetitions.emplace_back();
        run.counted = true;
        run.vflops.value = vflops;
    }
    for (Verification& run : runs) run.record.emplace();
    EXPECT_EQ(median_run(series, runs), 2U);
    const double regulated[] = {5, 1, 8};
    for (std::size_t run = 0; run < 3; ++run)
        runs[run].record->search = SearchRecord{.regulated = regulated[run]};
    EXPECT_EQ(median_run(series, runs), 0U);
}

TEST(Ranking, OfMiniResultsIsAnotherAndNeedsThreeRuns) {
    Submission mini = submission("laptop", 1);
    mini.record.workload.problem_class = "mini";
    mini.counted_runs = 3;
    Submission once = mini;
    once.manifest = "another";
    once.record.scores.vflops.value = 5;
    once.counted_runs = 2;
    Submission mixed = mini;
    mixed.manifest = "a third";
    mixed.uncounted_runs = 1;
    const auto rankings = rank({submission("large", 2), mini, once, mixed});
    ASSERT_EQ(rankings.size(), 2U);
    EXPECT_EQ(rankings[1].workload, "image_classification-mini");
    EXPECT_EQ(rankings[1].rows[0].rank, 1);
    EXPECT_EQ(*rankings[1].rows[0].submission.record.scores.vflops.value, 1);
    EXPECT_EQ(rankings[1].rows[1].rank, 0);
    EXPECT_EQ(rankings[1].rows[2].rank, 0) << "one of its runs is not VALID";
    EXPECT_EQ(rankings[1].rows[1].note,
              "median of 2 runs; the rules require 3 runs, all of them VALID");
    EXPECT_EQ(rankings[0].rows.size(), 1U);
}

TEST(Ranking, NotesThatAResultIsNotVerified) {
    Submission one = submission("doubtful", 2);
    one.is_verified = false;
    const RankingRow row = rank({one}).front().rows.front();
    EXPECT_EQ(row.note, "not verified");
    EXPECT_EQ(row.rank, 0) << "nothing is known of its VFLOPS";
    EXPECT_NE(to_text(rank({one})).find("not verified"), std::string::npos);
}

TEST(Ranking, PutsUnverifiedResultsBelow) {
    Submission forged = submission("forged", 9e20);
    forged.is_verified = false;
    const auto rows = rank({forged, submission("honest", 1)}).front().rows;
    EXPECT_EQ(rows[0].source, "honest");
    EXPECT_EQ(rows[0].rank, 1);
    EXPECT_EQ(rows[1].rank, 0);
}

TEST(Ranking, IsSafeForBrowsersSpreadsheetsAndTerminals) {
    const auto rankings = rank({submission("=<b>\"x\",\x1b[2J&", 2)});
    const std::string html = to_html(rankings);
    EXPECT_EQ(html.find("<b>"), std::string::npos);
    EXPECT_NE(html.find("=&lt;b&gt;&quot;x&quot;,"), std::string::npos) << html;
    EXPECT_EQ(html.find("http"), std::string::npos) << "one separate page";
    EXPECT_NE(to_csv(rankings).find(",\"'=<b>\"\"x\"\","), std::string::npos) << to_csv(rankings);
    EXPECT_EQ(to_text(rankings).find('\x1b'), std::string::npos);
}

TEST(Ranking, LinksToTheReportsInTheStyleOfTheReport) {
    Submission one = submission("one", 2);
    one.report = "../a b\"<#?:%/report.html";
    const std::string html = to_html(rank({one, submission("two", 1)}));
    EXPECT_NE(html.find("<td><a href=\"../a%20b%22%3C%23%3F%3A%25/report.html\">one</a></td>"),
              std::string::npos)
        << html;
    EXPECT_NE(html.find("<td>two</td>"), std::string::npos) << "without a report";
    EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
}

TEST(Ranking, HasTextOf80Columns) {
    Submission one = custom("one");
    one.record.topology.groups = 100'000;
    one.record.submission.organization = "Centre for Examples and Demonstrations";
    const std::string text = to_text(rank({one, submission("two", 1)}));
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
    EXPECT_NE(text.find("\n-     1.000e+20  "), std::string::npos) << text;
    const std::string facts = std::regex_replace(text, std::regex("\n +"), " ");
    EXPECT_NE(facts.find(" source: two; accelerators: cpu * 4; "), std::string::npos) << text;
    EXPECT_NE(facts.find("; verdict: CUSTOM; "), std::string::npos) << text;
    EXPECT_NE(facts.find("; note: run.level is custom\n"), std::string::npos) << text;
}

TEST(Ranking, HasEveryDigitInCsv) {
    const std::string csv = to_csv(rank({submission("a", 1234567890.125)}));
    EXPECT_NE(csv.find("\r\nimage_classification,1,a,,,a,2001-02-03T04:05:06Z,1234567890.125,"),
              std::string::npos)
        << csv;
}

TEST(Ranking, NamesTheDirectoryOfEachResultEvenIfItIsNotUtf8) {
    Submission one = submission("a", 2);
    one.directory = "r\xff/<a>";
    const auto rankings = rank({one});
    EXPECT_NE(to_text(rankings).find("directory: r\\xff/<a>"), std::string::npos)
        << to_text(rankings);
    EXPECT_NE(to_csv(rankings).find(",r\xEF\xBF\xBD/<a>,"), std::string::npos);
    EXPECT_NE(to_html(rankings).find("<td>r\\xff/&lt;a&gt;</td>"), std::string::npos);
}

TEST(Ranking, HasTheSameKeysInJsonAndCsv) {
    Submission one = submission("a", 2);
    one.record.scores.flops.value = std::nullopt;
    const auto rankings = rank({one});
    const auto json = nlohmann::ordered_json::parse(to_json(rankings));
    ASSERT_EQ(json.size(), 1U);
    std::string keys;
    for (const auto& [key, value] : json[0].items()) keys += (keys.empty() ? "" : ",") + key;
    EXPECT_EQ(keys,
              "workload,rank,source,system,organization,run,started_utc,vflops,flops,regulated,ops,"
              "best_accuracy,minutes,quality,metric,accelerators,M,P_degree,framework,level,"
              "verdict,manifest,"
              "directory,note");
    EXPECT_TRUE(to_csv(rankings).starts_with(keys + "\r\n"));
    EXPECT_EQ(json[0]["M"], 2);
    EXPECT_EQ(json[0]["vflops"], 2);
    EXPECT_EQ(json[0]["directory"], "results/a");
    EXPECT_TRUE(json[0]["flops"].is_null());
}

}  // namespace
}  // namespace hpcai::verification
