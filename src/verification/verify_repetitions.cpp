// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <hpcai/base/text.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/storage/sha256.hpp>
#include <hpcai/verification/repetitions.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

namespace fs = std::filesystem;

/// The configuration as if it were that of the first run.
std::string first_config(const RunRecord& record, std::size_t index) {
    config::Config config = config::parse(record.config, "config", {});
    config.run.seed -= index;
    return config::to_yaml(config);
}

using VerifyRun = std::function<Verification(const fs::path&)>;

void check_runs(const fs::path& directory, const VerifyRun& verify_run, SeriesVerification& series,
                Inspector& inspector) {
    const RepetitionsRecord& record = *series.record;
    std::optional<std::string> first;
    for (std::size_t index = 0; index < record.repetitions.size(); ++index) {
        const std::string& name = record.repetitions[index].directory;
        std::error_code error;
        if (!fs::is_directory(fs::symlink_status(directory / name, error))) {
            inspector.find(name, "is missing; {} lists it", kRepetitionsName);
            series.runs.emplace_back();
            continue;
        }
        Verification& run = series.runs.emplace_back(verify_run(directory / name));
        for (const Finding& one : run.findings)
            inspector.find(name + "/" + one.file, "{}", one.text);
        if (!run.record) continue;
        const auto config = inspector.attempt(name + "/result.json",
                                              [&] { return first_config(*run.record, index); });
        if (!config) continue;
        if (first) inspector.compare_lines(name + "/config.yaml", *config, *first);
        if (!first) first = config;
    }
}

/// The file as it must be, of runs that could be read.
RepetitionsRecord expected_of(const RepetitionsRecord& stored, const SeriesVerification& series) {
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

/// A run that did not end may have left files behind.
void check_entries(const fs::path& directory, const RepetitionsRecord& record,
                   Inspector& inspector) {
    std::set<std::string> known{kRepetitionsName};
    for (const RepetitionRecord& one : record.repetitions) known.insert(one.directory);
    const auto runs = static_cast<int>(record.repetitions.size());
    if (!record.stopped.empty()) known.insert(repetition_name(runs + 1));
    for (const auto& entry : fs::directory_iterator(directory)) {
        const std::string name = entry.path().filename().string();
        if (!known.contains(name)) {
            inspector.find(printable(name), "is there; {} does not list it", kRepetitionsName);
        }
    }
    if (runs > record.requested || (runs == record.requested) != record.stopped.empty()) {
        inspector.find(kRepetitionsName, "has {} runs of {} requested and {} reason why it stopped",
                       runs, record.requested, record.stopped.empty() ? "no" : "a");
    }
}

}  // namespace

SeriesVerification verify_repetitions(const fs::path& directory, const VerifyRun& verify_run) {
    SeriesVerification series;
    Inspector inspector(directory);
    const auto text = inspector.text_of(kRepetitionsName);
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
        inspector.compare_keys(kRepetitionsName, records::to_json(record),
                               records::to_json(expected_of(record, series)),
                               [](const std::string&) { return "by the runs' result.json"; });
    }
    series.findings = inspector.take();
    return series;
}

}  // namespace hpcai::verification
