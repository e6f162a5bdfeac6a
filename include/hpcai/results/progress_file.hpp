// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/base/progress_record.hpp>

namespace hpcai::results {

/// Replaces groups/<group>/progress.json below `output` by `progress`, written now. A run does not
/// fail for that: what cannot be written is not.
void write_progress(const std::filesystem::path& output, int group, ProgressRecord progress);

/// What a group says in that file, or by its record where it has none. Never throws.
GroupProgress read_progress(const std::filesystem::path& output, int group);

/// Removes that file of all groups below `output`, whose result has all that they say.
void remove_progress(const std::filesystem::path& output);

}  // namespace hpcai::results
