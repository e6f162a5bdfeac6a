// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/verdict_record.hpp>

/// `repetitions.json`, key by key: the runs of one series (run.repeat).
namespace hpcai {

/// One run. Its result is in `directory`.
struct RepetitionRecord {
    std::string directory;  // relative to the folder of repetitions.json
    std::uint64_t seed = 0;
    Status status = Status::invalid;
    ExitCode exit_code = ExitCode::invalid;
    bool counted = false;  // whether all groups finished; the statistics include only such runs
    Quantity flops;        // FLOP/s
    Quantity vflops;       // FLOP/s
    Quantity quality;      // of the ensemble
    Quantity training_seconds;
    std::string manifest;  // SHA-256 of the run's manifest.sha256
    HPCAI_RECORD(RepetitionRecord, directory, seed, status, exit_code, counted, flops, vflops,
                 quality, training_seconds, manifest);
};

/// Statistics of one number over the runs with `counted`.
struct RepetitionSpreadRecord {
    Quantity median;
    Quantity minimum;
    Quantity maximum;
    Quantity median_absolute_deviation;
    HPCAI_RECORD(RepetitionSpreadRecord, median, minimum, maximum, median_absolute_deviation);
};

struct RepetitionsRecord {
    std::string schema = "hpcai500-repetitions/1";
    std::string program_version;
    std::string name;
    int requested = 0;                        // run.repeat
    std::string stopped;                      // why requested runs are missing; empty if none is
    ExitCode exit_code = ExitCode::internal;  // the worst of all runs
    std::vector<RepetitionRecord> repetitions;
    RepetitionSpreadRecord flops;
    RepetitionSpreadRecord vflops;
    RepetitionSpreadRecord quality;
    RepetitionSpreadRecord training_seconds;
    HPCAI_RECORD(RepetitionsRecord, schema, program_version, name, requested, stopped, exit_code,
                 repetitions, flops, vflops, quality, training_seconds);
};

}  // namespace hpcai
