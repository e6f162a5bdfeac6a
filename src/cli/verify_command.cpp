// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <filesystem>

#include <nlohmann/json.hpp>

#include <hpcai/benchmark/verify_with_data.hpp>
#include <hpcai/context/build.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/report/summary.hpp>
#include <hpcai/results/report_files.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "commands.hpp"

namespace hpcai::cli {
namespace {

struct VerifyOptions {
    std::string directory, junit;
    bool json = false, explain = false;
    benchmark::DataToVerify data;
};

nlohmann::ordered_json findings_json(const std::vector<verification::Finding>& findings,
                                     const std::string& manifest, bool explain) {
    auto rows = nlohmann::ordered_json::array();
    for (const verification::Finding& finding : findings)
        rows.push_back({{"file", finding.file}, {"finding", finding.shown(explain)}});
    return {{"schema", "hpcai500-verify/1"},
            {"verified", findings.empty()},
            {"manifest", manifest},
            {"findings", std::move(rows)}};
}

/// Returns a line if another build of the program wrote the result, else an empty string.
std::string build_note(const RunRecord& record) {
    const bool is_mine = std::ranges::includes(record.environment, context::describe_build());
    return is_mine ? ""
                   : "note: another build of the program wrote this result; wording may differ\n";
}

ExitCode verify(const VerifyOptions& options, const Context& context) {
    verification::Verification result;
    nlohmann::ordered_json json;
    std::string text;
    const auto verify_run = [&](const std::filesystem::path& directory) {
        return options.data.folder.empty() ? results::verify_result(directory)
                                           : benchmark::verify_with_data(directory, options.data);
    };
    require(options.data.steps == 0 || !options.data.folder.empty(), ExitCode::usage,
            "verify: --replay needs the training data; name their folder with --data");
    const std::string empty_junit = verification::to_junit("", {}, false);
    require_replaceable("verify: --junit", options.junit,
                        empty_junit.substr(0, empty_junit.find(" verify ")));
    const std::string missing = verification::describe_missing_result(options.directory);
    if (verification::has_repetitions(options.directory)) {
        const auto series = verification::verify_repetitions(options.directory, verify_run);
        result = {.findings = series.findings, .files = series.files};
        json = findings_json(series.findings, series.digest, options.explain);
        auto& runs = json["repetitions"] = nlohmann::ordered_json::array();
        for (const verification::Verification& run : series.runs) {
            runs.push_back(findings_json(run.findings, run.manifest, options.explain));
            if (run.record && text.empty()) text = build_note(*run.record);
            result.agreed += run.agreed;
        }
        if (series.findings.empty())
            text = result.agreed + report::repetitions_line(*series.record, series.digest) + "\n";
    } else {
        if (missing.empty()) {
            result = verify_run(options.directory);
        } else {
            result.findings = {{"result.json", "is missing: " + missing}};
        }
        json = findings_json(result.findings, result.manifest, options.explain);
        if (result.record) text = build_note(*result.record);
        if (result.findings.empty())
            text = result.agreed + report::result_line(*result.record, result.manifest) + "\n";
    }
    for (const verification::Finding& finding : result.findings)
        text += finding.file + ": " + finding.shown(options.explain) + "\n";
    if (!options.junit.empty())
        storage::write_file_durably(
            options.junit, verification::to_junit(options.directory, result, options.explain));
    context.out << (options.json ? json_text(json) : text);
    if (!missing.empty()) return ExitCode::watchdog;
    return result.findings.empty() ? ExitCode::ok : ExitCode::mismatch;
}

}  // namespace

void add_verify_command(Command parent) {
    const auto [command, options] = parent.add_command(
        {"verify",
         "Check the files of a result, and recompute its numbers from steps and predictions.",
         {"hpcai500 verify results/quickstart", "hpcai500 verify /archive/2026-11/run-17 --json",
          "hpcai500 verify results/ucmerced --data /data/ucmerced"}},
        verify);
    command.add_argument("DIR", options.directory,
                         "result directory of a run or of several (run.repeat)");
    add_json_flag(command, options.json);
    command.add_flag("--explain", options.explain, "also print what each wrong value must be");
    command.add_text("--junit", options.junit, "FILE",
                     "also write a JUnit report with a test case per file");
    command.add_text("--data", options.data.folder, "DIR",
                     "also compare labels with the data in this folder, and predictions with those "
                     "that the stored weights make again. DIR is the common folder of the data "
                     "paths, a copy of it, or its parent");
    // After 30 steps losses no longer agree, because rounding errors grow from step to step.
    command.add_integer("--replay", options.data.steps, {1, 30},
                        "also train N steps of each model again, from the beginning and from each "
                        "kept checkpoint, and compare the losses; needs --data");
}

}  // namespace hpcai::cli
