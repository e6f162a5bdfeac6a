// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/records/repetitions_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/verification/verify.hpp>

/// Several runs of one invocation (run.repeat). Formulas are those of docs/METRICS.md
/// ("Repetitions").
namespace hpcai::verification {

inline constexpr const char* kRepetitionsName = "repetitions.json";

/// "repetition_3", the directory of the third run.
std::string repetition_name(int number);

/// Whether `directory` has the results of several runs.
bool has_repetitions(const std::filesystem::path& directory);

/// What the summary has of run `number`. `manifest` is the SHA-256 of its manifest.
RepetitionRecord describe_repetition(int number, const RunRecord& record,
                                     const std::string& manifest);

/// One number of the runs that are counted and have it.
std::vector<double> counted_values(const RepetitionsRecord& record,
                                   Quantity RepetitionRecord::*number);

/// Medians, spreads and the exit code, from the runs.
void derive_repetitions(RepetitionsRecord& record);

/// The run that stands for all: of those counted the one with the median VFLOPS, of two the lower;
/// the first where none is counted or has VFLOPS. `record` has a run.
std::size_t median_repetition(const RepetitionsRecord& record);

/// As stored in `directory`. Throws Error(data) as records::from_json does, and for a
/// list of no run or of directories that are not called as above.
RepetitionsRecord read_repetitions(const std::filesystem::path& directory);

struct SeriesVerification {
    std::vector<Finding> findings;            // of repetitions.json and all runs; none: all holds
    std::optional<RepetitionsRecord> record;  // as stored; nothing where it cannot be read
    std::string digest;                       // SHA-256 of repetitions.json
    std::vector<Verification> runs;           // in the record's order
};

/// Checks every run by `verify_run`, that they differ in their seeds alone, and that
/// repetitions.json follows from them.
SeriesVerification verify_repetitions(
    const std::filesystem::path& directory,
    const std::function<Verification(const std::filesystem::path&)>& verify_run);

}  // namespace hpcai::verification
