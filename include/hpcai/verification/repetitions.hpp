// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/records/repetitions_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/verification/verify.hpp>

/// The runs of one series (run.repeat), numbered from 1. A run counts if all its groups finished.
/// docs/METRICS.md ("Repetitions") has the formulas.
namespace hpcai::verification {

inline constexpr const char* kRepetitionsName = "repetitions.json";

/// Returns the name of a run's directory: "repetition_3" for run 3.
std::string repetition_name(int number);

/// Returns the configuration of run `number`: `series` with the seed of that run and run.repeat 1.
config::Config repetition_config(config::Config series, int number);

/// Returns whether `directory` has the results of several runs.
bool has_repetitions(const std::filesystem::path& directory);

/// Returns "the run has no result; see `hpcai500 status a`" if `directory` is that of a run, or of
/// several (run.repeat), without a result; else an empty string. Escapes control characters.
std::string describe_missing_result(const std::filesystem::path& directory);

/// Throws Error(watchdog) with the text of describe_missing_result(), if this text is not empty.
void require_finished(const std::filesystem::path& directory);

/// Throws Error(usage) unless `directory` has a result.json, and as require_finished().
void require_result(const std::filesystem::path& directory);

/// Returns the entry of run `number` in repetitions.json, from the run's `record`. `manifest` is
/// the SHA-256 of the run's manifest.
RepetitionRecord describe_repetition(int number, const RunRecord& record,
                                     const std::string& manifest);

/// Returns the values of the member `key` in the runs that count, without missing values.
std::vector<double> counted_values(const RepetitionsRecord& record,
                                   Quantity RepetitionRecord::*key);

/// Fills in medians, spreads and the exit code from the runs.
void derive_repetitions(RepetitionsRecord& record);

/// Reads repetitions.json in `directory`. Throws Error(data) as records::from_json does, or if it
/// lists no run or a run's directory has another name than repetition_name() returns.
RepetitionsRecord read_repetitions(const std::filesystem::path& directory);

/// Returns the directories of the runs of a series, or `directory` itself if it has no
/// repetitions.json. Throws as read_repetitions().
std::vector<std::filesystem::path> runs_of(const std::filesystem::path& directory);

/// The verification of several runs.
struct SeriesVerification {
    std::vector<Finding> findings;            // of repetitions.json and all runs
    std::vector<std::string> files;           // the files that were checked
    std::optional<RepetitionsRecord> record;  // as stored; empty if it cannot be read
    std::string digest;                       // SHA-256 of repetitions.json
    std::vector<Verification> runs;           // in the record's order
};

/// Verifies every run of the series in `directory` with `verify_run`. Checks that configurations
/// differ only in their seeds, and recomputes repetitions.json from the runs.
SeriesVerification verify_repetitions(
    const std::filesystem::path& directory,
    const std::function<Verification(const std::filesystem::path&)>& verify_run);

}  // namespace hpcai::verification
