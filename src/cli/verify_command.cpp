// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct Options {
    std::string directory;
    bool json = false;
};

std::string text_of(const verification::Verification& verification) {
    std::string text;
    for (const verification::Finding& finding : verification.findings) {
        text += finding.file + ": " + finding.text + "\n";
    }
    if (!verification.findings.empty()) return text;
    return report::result_line(*verification.record, verification.manifest) + "\n";
}

nlohmann::ordered_json json_of(const verification::Verification& verification) {
    nlohmann::ordered_json findings = nlohmann::ordered_json::array();
    for (const verification::Finding& finding : verification.findings) {
        findings.push_back({{"file", finding.file}, {"finding", finding.text}});
    }
    return {{"schema", "hpcai500-verify/1"},
            {"verified", verification.findings.empty()},
            {"manifest", verification.manifest},
            {"findings", std::move(findings)}};
}

std::string text_of(const verification::SeriesVerification& series) {
    std::string text;
    for (const verification::Finding& finding : series.findings) {
        text += finding.file + ": " + finding.text + "\n";
    }
    return text.empty() ? report::repetitions_line(*series.record, series.digest) + "\n" : text;
}

nlohmann::ordered_json json_of(const verification::SeriesVerification& series) {
    nlohmann::ordered_json runs = nlohmann::ordered_json::array();
    for (const verification::Verification& run : series.runs) runs.push_back(json_of(run));
    nlohmann::ordered_json document =
        json_of(verification::Verification{"", series.findings, std::nullopt});
    document["manifest"] = series.digest;
    document["repetitions"] = std::move(runs);
    return document;
}

ExitCode verify(const Options& options, std::ostream& out) {
    if (verification::has_repetitions(options.directory)) {
        const auto series =
            verification::verify_repetitions(options.directory, benchmark::verify_result);
        out << (options.json ? json_text(json_of(series)) : text_of(series));
        return series.findings.empty() ? ExitCode::ok : ExitCode::mismatch;
    }
    const verification::Verification verification = benchmark::verify_result(options.directory);
    out << (options.json ? json_text(json_of(verification)) : text_of(verification));
    return verification.findings.empty() ? ExitCode::ok : ExitCode::mismatch;
}

}  // namespace

void add_verify_command(CLI::App& parent, Context& context) {
    auto options = std::make_shared<Options>();
    CLI::App& command = add_command(
        parent,
        {"verify",
         "Check a result's files and form all its numbers again from steps and predictions.",
         {"hpcai500 verify results/quickstart", "hpcai500 verify /archive/2026-11/run-17 --json"}});
    add_text(command, "DIR", options->directory, "",
             "result directory of a run or of several (run.repeat)")
        .required();
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return verify(*options, context.out); });
}

}  // namespace hpcai::cli
