// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include <hpcai/base/median.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/repetitions.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

constexpr const char* kConfigName = "config.yaml";

RepetitionSpreadRecord spread_of(const RepetitionsRecord& record, Quantity RepetitionRecord::*key) {
    const std::vector<double> values = counted_values(record, key);
    if (values.empty()) {
        const Quantity none = no_value("no run in which all groups finished has this number");
        return {none, none, none, none};
    }
    const double middle = median(values);
    std::vector<double> deviations;
    for (const double value : values) deviations.push_back(std::abs(value - middle));
    return {{middle, ""},
            {std::ranges::min(values), ""},
            {std::ranges::max(values), ""},
            {median(std::move(deviations)), ""}};
}

/// Returns the position of an exit code in the order from best to worst. Codes that are not listed
/// are the worst.
int severity_of(ExitCode code) {
    constexpr std::array kOrder{ExitCode::ok, ExitCode::partial, ExitCode::invalid, ExitCode::data,
                                ExitCode::all_groups_failed};
    return static_cast<int>(std::ranges::find(kOrder, code) - kOrder.begin());
}

}  // namespace

std::vector<double> counted_values(const RepetitionsRecord& record,
                                   Quantity RepetitionRecord::*key) {
    std::vector<double> values;
    for (const RepetitionRecord& run : record.repetitions)
        if (run.counted && (run.*key).value) values.push_back(*(run.*key).value);
    return values;
}

std::string repetition_name(int number) {
    return fmt::format("repetition_{}", number);
}

config::Config repetition_config(config::Config series, int number) {
    series.run.seed += static_cast<std::uint64_t>(number) - 1;
    series.run.repeat = 1;
    return series;
}

bool has_repetitions(const std::filesystem::path& directory) {
    return storage::path_exists(directory / kRepetitionsName);
}

std::string describe_missing_result(const fs::path& directory) {
    const auto has = [&](const fs::path& name) { return storage::path_exists(directory / name); };
    const bool has_begun = has(kLaunchName) || has(repetition_name(1) + "/" + kLaunchName);
    if (!has_begun || has("result.json") || has(storage::kManifestName) || has(kRepetitionsName))
        return "";
    return fmt::format("the run has no result; see `hpcai500 status {}`",
                       printable(shell_quote(directory.string())));
}

void require_finished(const fs::path& directory) {
    const std::string missing = describe_missing_result(directory);
    require(missing.empty(), ExitCode::watchdog, "{}: {}", printable(directory.string()), missing);
}

void require_result(const fs::path& directory) {
    require_finished(directory);
    std::error_code error;
    require(fs::is_regular_file(directory / "result.json", error), ExitCode::usage,
            "{}: expected a result directory with its result.json{}", printable(directory.string()),
            has_repetitions(directory) ? "; it has repetitions, such as " +
                                             printable((directory / repetition_name(1)).string())
                                       : describe_runs_inside(directory));
}

RepetitionRecord describe_repetition(int number, const RunRecord& record,
                                     const std::string& manifest) {
    const bool all_finished = std::ranges::all_of(
        record.work.groups, [](const GroupRecord& group) { return group.failure.empty(); });
    return {.directory = repetition_name(number),
            .seed = record.workload.seed,
            .status = record.verdict.status,
            .exit_code = record.verdict.exit_code,
            .counted = all_finished,
            .flops = record.scores.flops,
            .vflops = record.scores.vflops,
            .quality = record.quality.ensemble,
            .training_seconds = record.time.training_seconds,
            .manifest = manifest};
}

void derive_repetitions(RepetitionsRecord& record) {
    record.exit_code = ExitCode::ok;
    for (const RepetitionRecord& run : record.repetitions) {
        if (severity_of(run.exit_code) > severity_of(record.exit_code))
            record.exit_code = run.exit_code;
    }
    record.flops = spread_of(record, &RepetitionRecord::flops);
    record.vflops = spread_of(record, &RepetitionRecord::vflops);
    record.quality = spread_of(record, &RepetitionRecord::quality);
    record.training_seconds = spread_of(record, &RepetitionRecord::training_seconds);
}

RepetitionsRecord read_repetitions(const std::filesystem::path& directory) {
    const auto path = directory / kRepetitionsName;
    RepetitionsRecord record = records::read_file<RepetitionsRecord>(path);
    require(!record.repetitions.empty(), ExitCode::data, "'{}': has no run", path.string());
    for (std::size_t index = 0; index < record.repetitions.size(); ++index) {
        const std::string& name = record.repetitions[index].directory;
        const std::string expected = repetition_name(static_cast<int>(index) + 1);
        require(name == expected, ExitCode::data,
                "'{}': repetitions[{}].directory: expected \"{}\", got \"{}\"", path.string(),
                index, expected, name.substr(0, 60));
    }
    return record;
}

std::vector<fs::path> runs_of(const fs::path& directory) {
    if (!has_repetitions(directory)) return {directory};
    std::vector<fs::path> runs;
    for (const RepetitionRecord& run : read_repetitions(directory).repetitions)
        runs.push_back(directory / run.directory);
    return runs;
}

namespace {

using VerifyRun = std::function<Verification(const fs::path&)>;

void check_runs(const fs::path& directory, const VerifyRun& verify_run, SeriesVerification& series,
                Inspector& inspector) {
    const RepetitionsRecord& record = *series.record;
    const auto parse = [](const std::string& text, const std::string& file) {
        return config::parse(text, file, {});
    };
    const auto config = inspector.parse(kConfigName, parse, config::to_yaml);
    series.files.emplace_back(kConfigName);
    if (config && config->run.repeat != record.requested) {
        inspector.report(kConfigName, "has run.repeat {}; {} has {}", config->run.repeat,
                         kRepetitionsName, record.requested);
    }
    for (std::size_t index = 0; index < record.repetitions.size(); ++index) {
        const std::string& name = record.repetitions[index].directory;
        std::error_code error;
        if (!fs::is_directory(fs::symlink_status(directory / name, error))) {
            inspector.report(name, "is missing; {} lists it", kRepetitionsName);
            series.runs.emplace_back();
            continue;
        }
        Verification& run = series.runs.emplace_back(verify_run(directory / name));
        for (const Finding& finding : run.findings)
            inspector.report(name + "/" + finding.file, "{}", finding.shown(true));
        for (const std::string& file : run.files) series.files.push_back(name + "/" + file);
        if (!run.record || !config) continue;
        const auto own = inspector.attempt(
            name + "/result.json", [&] { return parse(run.record->config.text, "config"); });
        if (!own) continue;
        const int number = static_cast<int>(index) + 1;
        inspector.compare_lines(name + "/config.yaml", config::to_yaml(*own),
                                config::to_yaml(repetition_config(*config, number)));
    }
}

/// Returns the expected content of repetitions.json, from the runs that could be read.
RepetitionsRecord expected_record(const RepetitionsRecord& stored,
                                  const SeriesVerification& series) {
    RepetitionsRecord expected = stored;
    for (std::size_t index = 0; index < stored.repetitions.size(); ++index) {
        const Verification& run = series.runs[index];
        if (!run.record) continue;
        expected.repetitions[index] =
            describe_repetition(static_cast<int>(index) + 1, *run.record, run.manifest);
        expected.name = run.record->name;
        expected.program_version = run.record->program_version;
    }
    derive_repetitions(expected);
    return expected;
}

/// Checks the names in the directory and the number of runs. A run without a result may have left
/// its folder.
void check_entries(const fs::path& directory, const RepetitionsRecord& record,
                   Inspector& inspector) {
    std::set<std::string> known{kRepetitionsName, kConfigName};
    for (const RepetitionRecord& run : record.repetitions) known.insert(run.directory);
    const auto runs = static_cast<int>(record.repetitions.size());
    if (!record.stopped.empty()) known.insert(repetition_name(runs + 1));
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        if (!known.contains(name)) {
            inspector.report(printable(name), "exists; {} does not list it", kRepetitionsName);
        }
    }
    if (runs > record.requested || (runs == record.requested) != record.stopped.empty()) {
        inspector.report(kRepetitionsName, "has {} of {} requested runs, but `stopped` is {}", runs,
                         record.requested, record.stopped.empty() ? "empty" : "not empty");
    }
}

}  // namespace

SeriesVerification verify_repetitions(const fs::path& directory, const VerifyRun& verify_run) {
    SeriesVerification series{.files = {kRepetitionsName}};
    Inspector inspector(directory);
    const auto text = inspector.read_text(kRepetitionsName);
    if (text) {
        series.digest = storage::sha256_hex(storage::bytes_of(*text));
        series.record =
            inspector.attempt(kRepetitionsName, [&] { return read_repetitions(directory); });
    }
    if (series.record) {
        const RepetitionsRecord& record = *series.record;
        inspector.compare_lines(kRepetitionsName, *text, records::to_json(record));
        check_entries(directory, record, inspector);
        check_runs(directory, verify_run, series, inspector);
        inspector.compare_keys(
            kRepetitionsName, records::to_json(record),
            records::to_json(expected_record(record, series)),
            [](const std::string&) { return "according to the runs' result.json"; });
    }
    series.findings = inspector.take_findings();
    return series;
}

}  // namespace hpcai::verification
