// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::benchmark {

/// launch.json of a result directory: how the run was begun, for programs that take it up again.
struct LaunchFacts {
    std::string started_utc;  // of the first program
    int ranks = 0;
    int groups = 0;
    int degree = 0;
    std::string config_sha256;
    bool operator==(const LaunchFacts&) const = default;
};

/// SHA-256 of a run's configuration, whatever its file looks like.
std::string config_digest(const config::Config& config);

LaunchFacts launch_facts(const plan::Layout& layout, const std::string& started_utc,
                         const config::Config& config);

/// Durable. Throws Error(usage) naming the file.
void write_launch_file(const std::filesystem::path& output, const LaunchFacts& facts);

/// Throws Error(data) naming the file and the key where one is missing or wrong.
LaunchFacts read_launch_file(const std::filesystem::path& output);

}  // namespace hpcai::benchmark
