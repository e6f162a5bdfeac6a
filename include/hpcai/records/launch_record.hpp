// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai {

/// The file of a LaunchRecord in a result directory.
inline constexpr const char* kLaunchName = "launch.json";

/// What a program knows when the ranks of a run are about to part into groups, for programs that
/// take the run up again or score it without them: `launch.json`. Plain data; `report` writes and
/// reads it.
struct LaunchRecord {
    std::string schema = "hpcai500-launch/2";
    std::string started_utc;     // of the program that began the run
    std::string config_sha256;   // of the configuration that the run was begun with
    std::string samples_sha256;  // of its samples' names and classes, as data::samples_digest
    std::string precision;       // in force, never "auto"
    TopologyRecord topology;     // of the last program
    StagingRecord staging;       // as in RunRecord, as the next ones
    Quantity staging_seconds;
    CeilingRecord roofline;
    DeterminismRecord determinism;
    std::map<std::string, std::string> environment;
    HPCAI_RECORD(LaunchRecord, schema, started_utc, config_sha256, samples_sha256, precision,
                 topology, staging, staging_seconds, roofline, determinism, environment);
};

}  // namespace hpcai
