// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <ostream>

#include <hpcai/benchmark/report_files.hpp>
#include <hpcai/report/summary.hpp>

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

ExitCode verify(const Options& options, std::ostream& out) {
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
    add_text(command, "DIR", options->directory, "", "result directory of a run").required();
    add_json_flag(command, options->json);
    set_action(command, context, [options, &context] { return verify(*options, context.out); });
}

}  // namespace hpcai::cli
