// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <hpcai/base/flight_record.hpp>
#include <hpcai/base/run_record.hpp>
#include <hpcai/config/config.hpp>

/// What groups have stored in a result directory.
namespace hpcai::benchmark {

/// The groups/<m>/record.json at `path`. Throws Error(data) naming it.
GroupResult read_record(const std::filesystem::path& path);

/// What a group has stored, where its record is whole, says that it finished, no file is missing,
/// and its predictions have the digest of the record; else nothing, and in `why`, which may be
/// null, why not.
std::optional<GroupResult> read_finished_group(const std::filesystem::path& output,
                                               const config::WorkloadConfig& workload, int group,
                                               std::string* why = nullptr);

/// For those that take a run up, and would train such groups anew in place of what they have:
/// throws Error(data), naming the file and what to do, where one of `groups` of `ranks` has a
/// record of no failure, or one that cannot be read and no checkpoint, and yet nothing that
/// read_finished_group takes.
void require_undamaged_groups(const std::filesystem::path& output,
                              const config::WorkloadConfig& workload, int groups, int ranks);

/// What a group of `ranks` that did not finish has stored; without content when it stored nothing.
GroupResult read_failed_group(const std::filesystem::path& output, int group, int ranks);

/// The flight record at `file`; nothing where it cannot be read.
std::optional<FlightRecord> read_flight(const std::filesystem::path& file);

/// What flight records below `output` say of a group that has not reported its end: that its first
/// rank hangs, and since when; empty where they say nothing.
std::string hang_of(const std::filesystem::path& output, int group);

}  // namespace hpcai::benchmark
