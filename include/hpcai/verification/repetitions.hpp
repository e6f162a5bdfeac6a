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

/// The runs of one invocation with run.repeat. docs/METRICS.md ("Repetitions") has the formulas.
namespace hpcai::verification {

inline constexpr const char* kRepetitionsName = "repetitions.json";

/// Returns the directory of a run: "repetition_3" for the third one.
std::string repetition_name(int number);

/// Returns the configuration of run `number`: `series` with its own seed and run.repeat 1.
config::Config repetition_config(config::Config series, int number);

/// Returns whether `directory` has the results of several runs.
bool has_repetitions(const std::filesystem::path& directory);

/// Returns the entry of run `number`. `manifest` is the SHA-256 of its manifest.
RepetitionRecord describe_repetition(int number, const RunRecord& record,
                                     const std::string& manifest);

/// Returns the values of `number` of all counted runs that have one.
std::vector<double> counted_values(const RepetitionsRecord& record,
                                   Quantity RepetitionRecord::*number);

/// Fills in medians, spreads and the exit code from the runs.
void derive_repetitions(RepetitionsRecord& record);

/// Returns the index of the counted run with the median VFLOPS (the lower median if their number is
/// even); 0 if no counted run has VFLOPS. `record` must have at least one run.
std::size_t median_repetition(const RepetitionsRecord& record);

/// Reads the record in `directory`. Throws Error(data) as records::from_json does, or if it has no
/// run or a directory with another name than repetition_name() returns.
RepetitionsRecord read_repetitions(const std::filesystem::path& directory);

/// Returns the directories of the runs in a result directory. Throws as read_repetitions().
std::vector<std::filesystem::path> runs_of(const std::filesystem::path& directory);

/// The verification of several runs.
struct SeriesVerification {
    std::vector<Finding> findings;            // of repetitions.json and all runs
    std::vector<std::string> files;           // that were checked
    std::optional<RepetitionsRecord> record;  // as stored; empty if it cannot be read
    std::string digest;                       // SHA-256 of repetitions.json
    std::vector<Verification> runs;           // in the record's order
};

/// Verifies every run with `verify_run`. Checks that the runs differ only in their seeds, and
/// recomputes repetitions.json from them.
SeriesVerification verify_repetitions(
    const std::filesystem::path& directory,
    const std::function<Verification(const std::filesystem::path&)>& verify_run);

}  // namespace hpcai::verification
