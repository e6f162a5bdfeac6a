// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/config/keys.hpp>
#include <hpcai/data/transforms.hpp>
#include <hpcai/report/table.hpp>
#include <hpcai/results/directory_lock.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/compare.hpp>
#include <hpcai/verification/ranking.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct CompareOptions {
    std::string first;
    std::string second;
    bool json = false;
};

ExitCode compare(const CompareOptions& options, const Context& context) {
    const auto comparison = verification::compare(options.first, options.second);
    context.out << (options.json ? verification::to_json(comparison)
                                 : verification::to_text(comparison));
    return ExitCode::ok;
}

struct ListOptions {
    std::vector<std::string> directories;
    std::string output;
};

struct TableOptions : ListOptions {
    std::string (*print)(const std::vector<report::TableRow>&) = report::csv_table;
};

struct RankOptions : ListOptions {
    std::string (*print)(const std::vector<verification::Ranking>&) = verification::to_text;
    bool unverified = false;
};

/// Prints `text` if `output`, the value of `option`, is empty, else writes it to this file.
void write_or_print(const std::string& option, const std::string& text, const std::string& output,
                    const Context& context) {
    if (output.empty()) {
        context.out << text;
    } else {
        // 10 bytes identify a text ("Ranking of"); HTML pages differ only after the doctype.
        require_replaceable(option, output, text.substr(0, text.starts_with('<') ? 32 : 10));
        storage::write_file_durably(output, text);
        context.out << "wrote " << printable(output) << '\n';
    }
}

/// Calls add(directory) once for each directory and returns the exit code. Prints the errors. If
/// all directories have errors, throws the last error with the code of the first.
ExitCode add_results(std::vector<std::string> directories,
                     const std::function<void(const std::string&)>& add) {
    std::vector<Error> skipped;
    std::set<std::filesystem::path> seen;
    std::error_code ignored;
    // results/* also has the link `latest`, which must not replace the directory's own name.
    std::ranges::stable_partition(directories, [&](const std::string& directory) {
        return !std::filesystem::is_symlink(directory, ignored);
    });
    for (const std::string& directory : directories) {
        if (!seen.insert(std::filesystem::weakly_canonical(directory, ignored)).second) continue;
        try {
            add(directory);
        } catch (const Error& error) {
            if (error.code() == ExitCode::internal) throw;
            skipped.push_back(error);
        }
    }
    const bool is_all = skipped.size() == seen.size();
    for (const Error& error : skipped) {
        if (is_all && &error == &skipped.back()) throw Error(skipped.front().code(), error.what());
        std::cerr << "hpcai500: " << error.what() << "; skipped\n";
    }
    return skipped.empty() ? ExitCode::ok : ExitCode::mismatch;
}

ExitCode table(const TableOptions& options, const Context& context) {
    require_place("table: --output", options.output);
    std::vector<report::TableRow> rows;
    std::set<std::filesystem::path> seen;  // a run may also be given in its series
    const ExitCode code = add_results(options.directories, [&](const std::string& directory) {
        for (const auto& run : verification::runs_of(directory))
            if (seen.insert(std::filesystem::weakly_canonical(run)).second)
                rows.push_back({run.string(), results::read_result(run)});
    });
    write_or_print("table: --output", options.print(rows), options.output, context);
    return code;
}

/// Throws if the result is missing or does not verify. With `unverified`, throws only if it cannot
/// be read.
verification::Submission submission_of(const std::string& directory, bool unverified) {
    verification::Submission one{.directory = directory};
    verification::Verification checked;
    std::filesystem::path run = directory;
    std::string unread_file = "result.json";  // if `checked` has no record
    if (verification::has_repetitions(directory)) {
        const auto series = verification::verify_repetitions(directory, results::verify_result);
        const std::size_t index =
            series.record ? verification::median_run(*series.record, series.runs) : 0;
        if (index < series.runs.size()) checked = series.runs[index];
        checked.findings = series.findings;
        const std::string name = verification::repetition_name(static_cast<int>(index) + 1);
        run /= name;
        unread_file = series.record ? name + "/result.json" : verification::kRepetitionsName;
        const auto is_counted = [&](const RepetitionRecord& repetition) {
            const bool is_mini = checked.record->workload.problem_class == "mini";
            return repetition.counted && repetition.vflops.value &&
                   (!is_mini || repetition.status == Status::valid);
        };
        if (checked.record) {
            const auto counted = std::ranges::count_if(series.record->repetitions, is_counted);
            one.counted_runs = static_cast<int>(counted);
            one.uncounted_runs = static_cast<int>(std::ssize(series.runs) - counted);
            one.incomplete = series.record->stopped;
            if (!one.incomplete.empty() && results::is_locked(directory) != true)
                one.incomplete +=
                    fmt::format("; `{}` resumes the runs",
                                results::resume_command(checked.record->topology.ranks,
                                                        checked.record->environment, directory));
        }
    } else {
        const bool is_parent = !verification::describe_runs_inside(directory).empty();
        if (is_parent) verification::require_result(directory);  // throws, naming the runs inside
        verification::require_finished(directory);
        checked = results::verify_result(directory);
    }
    one.is_verified = checked.findings.empty();
    if (!one.is_verified) {
        const verification::Finding& first = checked.findings.front();
        require(unverified && checked.record, ExitCode::mismatch,
                "rank: {}: does not verify ({}; {}: {}); `hpcai500 verify` prints all{}",
                printable(directory), counted(std::ssize(checked.findings), "finding"), first.file,
                first.text,
                checked.record ? ", and --unverified lists the result"
                               : "; " + unread_file + " cannot be read");
    }
    one.record = *checked.record;
    one.manifest = checked.manifest;
    one.report = run / "report.html";
    return one;
}

ExitCode rank(const RankOptions& options, const Context& context) {
    require_place("rank: --output", options.output);
    std::vector<verification::Submission> submissions;
    std::map<std::string, std::string> seen;  // directory of each manifest
    const ExitCode code = add_results(options.directories, [&](const std::string& directory) {
        verification::Submission one = submission_of(directory, options.unverified);
        if (one.is_verified) {  // else its files may differ from its manifest
            const auto [first, is_new] = seen.emplace(one.manifest, directory);
            require(is_new, ExitCode::mismatch,
                    "rank: {}: is the same result as {}, with manifest {}", printable(directory),
                    printable(first->second), one.manifest);
        }
        submissions.push_back(std::move(one));
    });
    const std::string file = options.output.empty() ? "." : options.output;
    const auto folder = std::filesystem::absolute(file).parent_path();
    std::error_code error;
    for (verification::Submission& one : submissions)
        one.report = std::filesystem::proximate(one.report, folder, error).string();
    write_or_print("rank: --output", options.print(verification::rank(submissions)), options.output,
                   context);
    return code;
}

struct ReportOptions {
    std::string directory;
    std::string output;
};

ExitCode report(const ReportOptions& options, const Context& context) {
    if (options.output.empty()) {
        results::rerender_report_files(options.directory);
        context.out << "wrote report.html and mllog in " << printable(options.directory) << '\n';
        return ExitCode::ok;
    }
    require_place("report: --output", options.output);
    const RunRecord record = results::read_result(options.directory);
    const auto files = results::render_report_files(options.directory, record);
    write_or_print("report: --output", files.at("report.html"), options.output, context);
    return ExitCode::ok;
}

void add_list_options(Command command, ListOptions& options) {
    command.add_texts("DIR", options.directories, "TEXT",
                      "result directories of runs or of repeated runs", Presence::required);
    command.add_text("--output", options.output, "FILE", "write to this file");
}

}  // namespace

void add_compare_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"compare",
         "Compare two results: settings that differ, and metrics with statistical tests.",
         {"hpcai500 compare results/fp32 results/bf16",
          "hpcai500 compare results/before results/after --json"}},
        compare);
    command.add_argument("A", options.first, "first result directory");
    command.add_argument("B", options.second, "second result directory");
    add_json_flag(command, options.json);
}

void add_rank_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"rank",
         "Rank verified results by VFLOPS, searches by regulated OPS. Results without a rank are "
         "listed last. Results that do not verify, and copies of results, are skipped; the exit "
         "code is then not 0.",
         {"hpcai500 rank results/site-a results/site-b",
          "hpcai500 rank results/* --format html --output ranking.html"}},
        rank);
    add_list_options(command, options);
    command.add_choice("--format", options.print,
                       {{"text", verification::to_text},
                        {"csv", verification::to_csv},
                        {"json", verification::to_json},
                        {"html", verification::to_html}},
                       "default: text");
    command.add_flag("--unverified", options.unverified,
                     "also list results that do not verify, marked as such");
}

void add_table_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"table",
         "Print a CSV table with a row for each run and a column for each number and setting. "
         "Results that cannot be read are skipped; the exit code is then not 0.",
         {"hpcai500 table results/fp32 results/bf16 --output runs.csv",
          "hpcai500 table results/* --format openmetrics --output hpcai500.prom"}},
        table);
    add_list_options(command, options);
    command.add_choice("--format", options.print,
                       {{"csv", report::csv_table}, {"openmetrics", report::openmetrics_table}},
                       "openmetrics: main numbers, for Prometheus; default: csv");
}

void add_report_command(Command parent) {
    const auto [command, options] =
        parent.add_command({"report",
                            "Write report.html and the MLPerf logs of a result again.",
                            {"hpcai500 report results/quickstart --output /tmp/quickstart.html",
                             "hpcai500 report results/quickstart"}},
                           report);
    command.add_argument("DIR", options.directory, "result directory of a run");
    command.add_text("--output", options.output, "FILE", "write only report.html, to this file");
}

}  // namespace hpcai::cli
