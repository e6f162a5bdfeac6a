// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/table.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "child_process.hpp"
#include "report/example_record.hpp"

namespace hpcai::cli {
namespace {

Outcome verify_by_script(const TemporaryFolder& folder, const std::string& directory) {
    return execute_in(folder.path(), {"python3", source("scripts/verify_result"), directory});
}

/// Writes a series of one run that has no result.
void write_series_without_a_result(const std::filesystem::path& directory) {
    RepetitionsRecord record{.requested = 1};
    record.repetitions = {verification::describe_repetition(1, report::example_record(), "")};
    verification::derive_repetitions(record);
    std::filesystem::create_directories(directory / "repetition_1");
    std::ofstream(directory / "repetition_1/launch.json") << "{}\n";
    std::ofstream(directory / "config.yaml") << config::to_yaml({});
    std::ofstream(directory / "repetitions.json") << records::to_json(record);
}

TEST(Verify, RejectsADirectoryThatIsNotThere) {
    const TemporaryFolder folder;
    for (const char* command : {"verify", "rank"})
        expect_refused(
            run_in(folder.path(), {command, "nowhere"}), 2,
            "nowhere: expected the directory of a result, got a path that does not exist\n");
    std::ofstream(folder / "file") << "mine";
    expect_refused(run_in(folder.path(), {"verify", "file"}), 2, "of a result, got a file\n");
    expect_refused(run_in(folder.path(), {"compare", "nowhere", "."}), 2, "nowhere: expected");
}

TEST(Verify, NamesWhatAnEmptyDirectoryLacks) {
    const TemporaryFolder folder;
    const Outcome outcome = run_in(folder.path(), {"verify", "."});
    EXPECT_EQ(outcome.exit_code, 10);
    EXPECT_EQ(outcome.out, "manifest.sha256: is missing\nresult.json: is missing\n");
    const Outcome script = verify_by_script(folder, ".");
    EXPECT_EQ(script.exit_code, 10);
    EXPECT_EQ(script.out, outcome.out);
}

TEST(Verify, ReportsThatARunHasNoResultWithTheCodeOfTheOtherCommands) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "my run");
    for (const char* name : {"launch.json", "config.yaml"})
        std::ofstream(folder / "my run" / name) << "{}\n";
    std::filesystem::create_symlink("nowhere", folder / "my run/result.json");
    const std::string reason = "the run has no result", hint = "; see `hpcai500 status 'my run'`";
    for (const std::vector<std::string>& command :
         std::vector<std::vector<std::string>>{{"rank"},
                                               {"rank", "--unverified"},
                                               {"table"},
                                               {"report"},
                                               {"compare", "my run"},
                                               {"energy", "--readings", "power.csv"},
                                               {"export", "--output", "best.safetensors"}}) {
        std::vector<std::string> words = command;
        words.emplace_back("my run");
        expect_refused(run_in(folder.path(), words), 6,
                       "hpcai500: my run: " + reason + hint + "\n");
    }
    const std::string finding = "is missing: " + reason;
    const Outcome text = run_in(folder.path(), {"verify", "my run", "--junit", "junit.xml"});
    EXPECT_EQ(text.exit_code, 6);
    EXPECT_EQ(text.out, "result.json: " + finding + hint + "\n");
    EXPECT_NE(text_of(folder / "junit.xml").find("<failure>" + finding), std::string::npos);
    const Outcome json = run_in(folder.path(), {"verify", "my run", "--json"});
    EXPECT_EQ(json.exit_code, 6);
    EXPECT_NE(json.out.find("\"finding\": \"" + finding + hint), std::string::npos) << json.out;
    const Outcome script = verify_by_script(folder, "my run");
    EXPECT_EQ(script.exit_code, 6);
    EXPECT_EQ(script.out, "result.json: " + finding + "\n");
    std::filesystem::remove(folder / "my run/result.json");
    std::ofstream(folder / "my run/result.json") << "{}\n";
    EXPECT_NE(run_in(folder.path(), {"verify", "my run"}).out.find("manifest.sha256: is missing\n"),
              std::string::npos);
}

TEST(Verify, ListsTheFindingsOfASeriesOfWhichARunHasNoResult) {
    const TemporaryFolder folder;
    write_series_without_a_result(folder / "series");
    for (const Outcome& outcome :
         {run_in(folder.path(), {"verify", "series"}), verify_by_script(folder, "series")}) {
        EXPECT_EQ(outcome.exit_code, 10) << outcome.error;
        EXPECT_EQ(outcome.out,
                  "repetition_1/manifest.sha256: is missing\n"
                  "repetition_1/result.json: is missing\n");
    }
}

TEST(Results, AreNamedInOneLineAlsoWhereTheyAreMissing) {
    const TemporaryFolder folder;
    for (const char* command : {"verify", "report"})
        expect_refused(run_in(folder.path(), {command, "a\nb"}), 2, "a\\nb: expected ");
    EXPECT_EQ(verify_by_script(folder, "a\nb").error,
              "verify_result: a\\nb: expected the directory of a result\n");
    write_series_without_a_result(folder / "a\nb");
    expect_refused(run_in(folder.path(), {"report", "a\nb"}), 2, "such as a\\nb/repetition_1\n");
}

TEST(Verify, WritesAJunitReportAlsoOfAResultThatFails) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "a<\xff&\"");
    std::ofstream(folder / "a<\xff&\"/x\x01\xef\xbf\xbf.txt") << "x";
    const Outcome outcome = run_in(folder.path(), {"verify", "a<\xff&\"", "--junit", "junit.xml"});
    EXPECT_EQ(outcome.exit_code, 10);
    const Outcome parsed = execute_in(
        folder.path(), {"python3", "-c",
                        "import xml.etree.ElementTree as t; s = t.parse('junit.xml').getroot()\n"
                        "print(s.get('tests'), s.get('failures'), *[c.get('name') + ':' + "
                        "str(c.findtext('failure'))"
                        " for c in s if c.get('name').isascii()])"});
    EXPECT_EQ(parsed.out, "3 2 manifest.sha256:is missing\n result.json:is missing\n\n")
        << parsed.error << text_of(folder / "junit.xml");
}

TEST(Results, AreNamedWhereTheirParentIsGiven) {
    const TemporaryFolder folder;
    for (const char* name : {"old", "new", "middle", "none"})
        std::filesystem::create_directories(folder / "results" / name);
    const auto now = std::filesystem::file_time_type::clock::now();
    for (const auto& [name, hours] : {std::pair{"old", 3}, {"new", 1}, {"middle", 2}}) {
        const auto config = folder / "results" / name / "config.yaml";
        std::ofstream(config) << "{}\n";
        std::filesystem::last_write_time(config, now - std::chrono::hours(hours));
    }
    std::filesystem::create_directory_symlink("new", folder / "results/latest");
    const std::string inside =
        "; runs inside, newest first: results/new, results/middle, results/old\n";
    for (const std::vector<std::string>& command : {std::vector<std::string>{"status", "results"},
                                                    {"report", "results"},
                                                    {"rank", "results"},
                                                    {"compare", "results", "results/old"}}) {
        expect_refused(run_in(folder.path(), command), 2, inside);
    }
    const Outcome verify = run_in(folder.path(), {"verify", "results"});
    EXPECT_EQ(verify.exit_code, 10) << verify.error;
    EXPECT_EQ(verify.out, "result.json: is missing" + inside);
}

TEST(Verify, ReplacesNoFileOfAnotherKind) {
    const TemporaryFolder folder;
    const std::vector<std::string> words{"verify", ".", "--junit", "report"};
    for (const std::string before : {"", "seed: 1\n"}) {
        std::ofstream(folder / "report") << before;
        expect_refused(run_in(folder.path(), words), 2,
                       "verify: --junit: expected a new file or an earlier output of this command, "
                       "got 'report'");
        EXPECT_EQ(text_of(folder / "report"), before);
    }
    expect_refused(run_in(folder.path(), {"verify", "none", "--junit", "report"}), 2,
                   "verify: --junit: expected a new file");  // before it looks at the result
    std::filesystem::remove(folder / "report");
    EXPECT_EQ(run_in(folder.path(), words).exit_code, 10);
    const std::string first = text_of(folder / "report");
    EXPECT_EQ(run_in(folder.path(), words).exit_code, 10);
    EXPECT_NE(text_of(folder / "report"), first) << "it lists the earlier report";
}

TEST(Outputs, OfResultsAreRejectedInAMissingFolderBeforeAResultIsRead) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "full.safetensors");
    for (const auto& [command, option, name] : {std::tuple{"verify", "--junit", "x.xml"},
                                                {"rank", "--output", "x.html"},
                                                {"table", "--output", "x.csv"},
                                                {"report", "--output", "x.html"},
                                                {"export", "--output", "x.safetensors"}}) {
        const std::string file = "no/" + std::string(name);
        const std::string where = fmt::format("{}: {}: ", command, option);
        expect_refused(run_in(folder.path(), {command, "none", option, file}), 2,
                       where + "expected a file in an existing folder, got '" + file + "'");
        expect_refused(run_in(folder.path(), {command, "none", option, "full.safetensors"}), 2,
                       where + "expected a file, got the folder 'full.safetensors'");
    }
}

TEST(Verify, DoesNotWaitForAPipeThatIsItsOutput) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "run");
    ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
    expect_refused(run_in(folder.path(), {"verify", "run", "--junit", "pipe"}), 2, "got 'pipe'");
}

TEST(Rank, SkipsWhatDoesNotVerifyByName) {
    const TemporaryFolder folder;
    expect_refused(run_in(folder.path(), {"rank", "."}), 10, ".: does not verify (2 findings");
    expect_refused(run_in(folder.path(), {"rank", ".", "--unverified"}), 10,
                   "`hpcai500 verify` prints all; result.json cannot be read");
    expect_refused(run_in(folder.path(), {"rank", ".", "--format", "htm"}), 2,
                   "expected text, csv, json or html, got 'htm'; did you mean 'html'?");
    run_in(folder.path(), {"rank", ".", "--format", "csv", "--output", "f.csv"});
    EXPECT_FALSE(std::filesystem::exists(folder / "f.csv")) << "without any row";
}

TEST(Rank, NamesTheFileOfASeriesThatCannotBeRead) {
    const TemporaryFolder folder;
    write_series_without_a_result(folder / "series");
    const std::vector<std::string> words{"rank", "series", "--unverified"};
    expect_refused(run_in(folder.path(), words), 10, "; repetition_1/result.json cannot be read");
    std::ofstream(folder / "series/repetitions.json") << "{}\n";
    expect_refused(run_in(folder.path(), words), 10, "prints all; repetitions.json cannot be read");
}

TEST(Rank, NamesAllResultsThatDoNotVerify) {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder / "series/repetition_1");
    std::ofstream(folder / "series/repetition_1/launch.json") << "{}\n";
    std::filesystem::create_directory(folder / "empty");
    const Outcome outcome = run_in(folder.path(), {"rank", "series", "empty"});
    EXPECT_EQ(outcome.exit_code, 6) << "the code of the first";
    EXPECT_TRUE(outcome.error.starts_with(
        "hpcai500: series: the run has no result; see `hpcai500 status series`; skipped\n"))
        << outcome.error;
    EXPECT_NE(outcome.error.find("\nhpcai500: rank: empty: does not verify (2 findings; "),
              std::string::npos)
        << outcome.error;
}

TEST(Rank, AndReportReplaceOnlyTheirOwnPages) {
    const TemporaryFolder folder;
    std::ofstream(folder / "result.json") << records::to_json(report::example_record());
    const auto write = [&](std::vector<std::string> command, const std::string& file) {
        command.insert(command.end(), {"--output", file});
        return run_in(folder.path(), command);
    };
    const std::vector<std::string> rank{"rank", ".", "--unverified", "--format", "html"};
    const std::vector<std::string> report{"report", "."};
    for (int times = 0; times < 2; ++times) {
        EXPECT_EQ(write(rank, "ranking.html").error, "");
        EXPECT_EQ(write(report, "report.html").error, "");
    }
    const std::string refusal =
        ": --output: expected a new file or an earlier output of this command, got ";
    expect_refused(write(rank, "report.html"), 2, "rank" + refusal + "'report.html'");
    expect_refused(write(report, "ranking.html"), 2, "report" + refusal + "'ranking.html'");
}

TEST(Table, RejectsWhatIsNoResult) {
    const TemporaryFolder folder;
    expect_refused(run_in(folder.path(), {"table", ".", "--output", "f.csv"}), 2,
                   ".: expected a result directory");
    EXPECT_FALSE(std::filesystem::exists(folder / "f.csv")) << "without any row";
}

TEST(Table, DoesNotReplaceAnotherFile) {
    const TemporaryFolder folder;
    std::ofstream(folder / "result.json") << records::to_json(report::example_record());
    std::ofstream(folder / "notes") << "mine";
    expect_refused(run_in(folder.path(), {"table", ".", "--output", "notes"}), 2,
                   "table: --output: expected a new file or an earlier output");
}

TEST(Table, ListsARunOnceUnderItsOwnNameAlsoForPrometheus) {
    const TemporaryFolder folder;
    std::filesystem::create_directory(folder / "run");
    std::filesystem::create_symlink("run", folder / "latest");
    std::ofstream(folder / "run/result.json") << records::to_json(report::example_record());
    const std::string csv = run_in(folder.path(), {"table", "latest", "run"}).out;
    EXPECT_EQ(std::ranges::count(csv, '\n'), 2) << csv;
    EXPECT_NE(csv.find("\nrun,"), std::string::npos) << csv;
    const Outcome outcome = run_in(folder.path(), {"table", "latest", "run", "--format",
                                                   "openmetrics", "--output", "hpcai500.prom"});
    EXPECT_EQ(outcome.out, "wrote hpcai500.prom\n");
    EXPECT_EQ(text_of(folder / "hpcai500.prom"),
              report::openmetrics_table({{"run", report::example_record()}}));
}

}  // namespace
}  // namespace hpcai::cli
