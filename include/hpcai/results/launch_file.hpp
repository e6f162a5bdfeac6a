// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/run_record.hpp>

namespace hpcai::results {

/// Returns "; " and a remedy if a launch was killed while it created `output`; else "".
std::string describe_broken_creation(const std::filesystem::path& output);

/// Throws Error(usage) unless `output` has the config.yaml of a run or of repeated runs.
void require_run(const std::filesystem::path& output);

/// Throws Error(usage) unless `output` has the config.yaml of one run. Throws as read_config().
void require_one_run(const std::filesystem::path& output);

/// Reads config.yaml. Throws the errors of config::read_file and config::parse.
config::Config read_config(const std::filesystem::path& output);

/// Returns the SHA-256 of the effective configuration of the run's first launch, as YAML.
std::string config_digest(const context::RunContext& context);

/// Describes the launch of a run that computes with `resources`. The caller sets started_utc,
/// roofline, determinism, environment and invocations.
LaunchRecord launch_record(const context::RunContext& context, const context::Resources& resources);

/// Writes launch.json durably. Throws Error(usage) naming the file.
void write_launch_file(const std::filesystem::path& output, const LaunchRecord& launch);

/// Reads launch.json. Throws Error(data) naming the file and any missing or wrong key.
LaunchRecord read_launch_file(const std::filesystem::path& output);

/// Returns the context that rank 0 had in a launch of the run in `output` with this `topology`.
/// Throws as verification::place_ranks.
context::RunContext context_of(const std::filesystem::path& output, const TopologyRecord& topology,
                               config::Config config);

/// Throws Error(usage) unless the run began with `config_text`, the YAML text of the configuration
/// that is now in its directory.
void require_same_config(const std::filesystem::path& output, const std::string& config_text,
                         const LaunchRecord& launch);

/// Throws Error(data) unless samples.sha256 is that of the run's first launch.
void require_same_samples(const std::filesystem::path& output, const data::SampleSets& samples,
                          const LaunchRecord& launch);

}  // namespace hpcai::results
