// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/records/flight_record.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/records/run_record.hpp>

/// The files that groups store in a result directory.
namespace hpcai::results {

/// Reads the record of a group that finished. The result is empty if the record is missing, damaged
/// or of another group, or has a failure; if another file is missing; or if the predictions do not
/// have the recorded digest. `reason`, which may be null, then receives the explanation. Weights
/// may be missing without run.keep_weights.
std::optional<GroupResult> read_finished_group(const std::filesystem::path& output,
                                               const config::Config& config, int group,
                                               std::string* reason = nullptr);

/// Returns how many of the run's `groups` groups of `ranks` ranks have finished. A group may have
/// finished if its record has no failure, or if it has an unreadable record and no checkpoint. If
/// read_finished_group rejects such a group, which a resumed run would train again, throws
/// Error(data) with the reason and a remedy.
int require_undamaged_groups(const std::filesystem::path& output, const config::Config& config,
                             int groups, int ranks);

/// Reads the record of a group of `ranks` ranks that did not finish. If there is no readable
/// record, sets only the group's number and its number of ranks.
GroupResult read_failed_group(const std::filesystem::path& output, int group, int ranks);

/// Reads a flight record. The result is empty if the file cannot be read.
std::optional<FlightRecord> read_flight(const std::filesystem::path& file);

/// Describes why the flight record of a group's first rank was written, and in which step and phase
/// the rank was. Returns an empty text if there is no readable record.
std::string describe_hang(const std::filesystem::path& output, int group);

/// Replaces groups/<group>/progress.json below `output` by `progress` with the current time.
/// Ignores errors, because a run must not fail because of its progress file.
void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress);

/// Reads the progress of a group from its progress.json or, if there is none, from its record.
/// Never throws.
GroupProgress read_progress(const std::filesystem::path& output, int group);

/// Removes progress.json of all groups below `output`.
void remove_progress(const std::filesystem::path& output);

}  // namespace hpcai::results
