// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/base/text.hpp>
#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/verification/ranking.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::vector<std::string> directories;
    std::string format = "text";
    bool unverified = false;
};

verification::Submission read(const std::string& directory, bool unverified) {
    const verification::Verification checked = benchmark::verify_result(directory);
    const bool is_verified = checked.findings.empty();
    if (!is_verified) {
        const verification::Finding& first = checked.findings.front();
        require(unverified && checked.record, ExitCode::mismatch,
                "rank: {}: does not verify ({} findings; {}: {}); `hpcai500 verify` lists them, "
                "--unverified takes it all the same",
                printable(directory), checked.findings.size(), first.file, first.text);
    }
    return {directory, *checked.record, is_verified, checked.manifest};
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
    command.add_option("DIR", options->directories, "result directories")->required();
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
