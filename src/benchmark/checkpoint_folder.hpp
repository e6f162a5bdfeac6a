// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

/// The folder of a group's checkpoints.
namespace hpcai::benchmark {

/// checkpoints/<group> of a result directory.
std::filesystem::path checkpoint_directory(const std::filesystem::path& output, int group);

/// When the group has stored what became of it, and no rank writes any more; what cannot be removed
/// stays.
void remove_group_checkpoints(const std::filesystem::path& output, int group) noexcept;

/// The steps of the newest checkpoint, of at most `steps`, that all `ranks` of the group have
/// called whole; 0: none is. Throws as training::list_checkpoints.
std::int64_t last_checkpoint(const std::filesystem::path& output, int group, int ranks,
                             std::int64_t steps = std::numeric_limits<std::int64_t>::max());

}  // namespace hpcai::benchmark
