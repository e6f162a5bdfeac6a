// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <ostream>

#include <hpcai/base/text.hpp>
#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/verification/ranking.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::vector<std::string> directories;
    std::string format = "text";
    bool unverified = false;
};

/// Whether nothing was found. Throws where that is not enough.
bool is_verified(const std::string& directory, const std::vector<verification::Finding>& findings,
                 bool is_asked, bool can_be_read) {
    const bool may_be_taken = is_asked && can_be_read;
    if (findings.empty()) return true;
    const verification::Finding& first = findings.front();
    require(may_be_taken, ExitCode::mismatch,
            "rank: {}: does not verify ({} findings; {}: {}); `hpcai500 verify` lists them{}",
            printable(directory), findings.size(), first.file, first.text,
            is_asked ? " and none of its numbers can be read"
                     : ", --unverified takes what can be read all the same");
    return false;
}

verification::Submission read(const std::string& directory, bool unverified) {
    if (!verification::has_repetitions(directory)) {
        const verification::Verification checked = benchmark::verify_result(directory);
        const bool is_whole =
            is_verified(directory, checked.findings, unverified, checked.record.has_value());
        return {directory, *checked.record, is_whole, checked.manifest};
    }
    const verification::SeriesVerification series =
        verification::verify_repetitions(directory, benchmark::verify_result);
    const std::size_t index = series.record ? verification::median_repetition(*series.record) : 0;
    const bool can_be_read = index < series.runs.size() && series.runs[index].record;
    const bool is_whole = is_verified(directory, series.findings, unverified, can_be_read);
    const verification::Verification& median = series.runs[index];
    const int all = static_cast<int>(series.runs.size());
    const int counted = static_cast<int>(std::ranges::count_if(
        series.record->repetitions,
        [](const RepetitionRecord& one) { return one.counted && one.vflops.value; }));
    return {directory, *median.record, is_whole, median.manifest, counted, all - counted};
}

ExitCode rank(const Options& options, std::ostream& out) {
    std::vector<verification::Submission> submissions;
    for (const std::string& directory : options.directories) {
        submissions.push_back(read(directory, options.unverified));
    }
    const auto rankings = verification::rank(submissions);
    out << (options.format == "csv"    ? verification::to_csv(rankings)
            : options.format == "html" ? verification::to_html(rankings)
                                       : verification::to_text(rankings));
    return ExitCode::ok;
}

}  // namespace

void add_rank_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent, {"rank",
                 "The ranking table of results that verify: those that are VALID by VFLOPS, the "
                 "others below.",
                 {"hpcai500 rank results/site-a results/site-b",
                  "hpcai500 rank results/* --format html --unverified"}});
    command
        .add_option("DIR", options->directories,
                    "result directories, of runs or of several runs each")
        ->required();
    command
        .add_option_function<std::string>(
            "--format",
            [options](const std::string& format) {
                require(format == "text" || format == "csv" || format == "html", ExitCode::usage,
                        "rank: --format: expected text, csv or html, got {}", in_quotes(format));
                options->format = format;
            },
            "text (the default), csv or html")
        ->type_name("NAME");
    command.add_flag("--unverified", options->unverified,
                     "take results that do not verify, too, and say so");
    set_action(command, context, [options, &context] { return rank(*options, context.out); });
}

}  // namespace hpcai::cli
