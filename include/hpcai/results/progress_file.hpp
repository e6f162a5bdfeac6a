// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/records/progress_record.hpp>

namespace hpcai::results {

/// Replaces groups/<group>/progress.json below `output` and sets its time. Ignores errors, because
/// a run must not fail for its progress file.
void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress);

/// Reads the progress of a group from that file or, if there is none, from its record. Never
/// throws.
GroupProgress read_progress(const std::filesystem::path& output, int group);

/// Removes that file of all groups below `output`.
void remove_progress(const std::filesystem::path& output);

}  // namespace hpcai::results
