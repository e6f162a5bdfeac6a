// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include <hpcai/base/launch_record.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/context/run_context.hpp>

namespace hpcai::results {

/// SHA-256 of a run's configuration, whatever its file looks like.
std::string config_digest(const config::Config& config);

/// Describes the launch of a run that computes with `resources`. The caller adds when the run
/// began, its ceiling, its guarantee of equal bits and its environment.
LaunchRecord launch_record(const context::RunContext& context, const context::Resources& resources);

/// Durable. Throws Error(usage) naming the file.
void write_launch_file(const std::filesystem::path& output, const LaunchRecord& launch);

/// Throws Error(data) naming the file and the key where one is missing or wrong.
LaunchRecord read_launch_file(const std::filesystem::path& output);

/// Throws Error(usage) unless `config`, that of the directory now, is what the run was begun with.
void require_same_config(const std::filesystem::path& output, const config::Config& config,
                         const LaunchRecord& launch);

/// Throws Error(data) unless `samples`, those that its configuration leads to now, have the names
/// and classes of those that the run was begun with.
void require_same_samples(const std::filesystem::path& output, const data::SampleSets& samples,
                          const LaunchRecord& launch);

}  // namespace hpcai::results
