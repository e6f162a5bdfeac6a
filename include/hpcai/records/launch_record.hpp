// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai {

inline constexpr const char* kLaunchName = "launch.json";

/// `launch.json`: facts of a launch before its ranks form groups. `resume` and `score` read it.
struct LaunchRecord {
    std::string schema = "hpcai500-launch/3";
    std::string started_utc;     // start of the launch that began the run
    std::string config_sha256;   // of the configuration that the run began with
    std::string samples_sha256;  // data::SampleSets::sha256
    std::string precision;       // the resolved precision, never "auto"
    TopologyRecord topology;     // of the latest launch
    StagingRecord staging;       // this and the members below: as in RunRecord
    Quantity staging_seconds;
    CeilingRecord roofline;
    DeterminismRecord determinism;
    std::map<std::string, std::string> environment;
    std::vector<InvocationRecord> invocations;
    HPCAI_RECORD(LaunchRecord, schema, started_utc, config_sha256, samples_sha256, precision,
                 topology, staging, staging_seconds, roofline, determinism, environment,
                 invocations);
};

}  // namespace hpcai
