// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include <hpcai/data/staged_pictures.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

/// Reads `packs`, which are complete in `folder`, as made of `source`; the paths of the source are
/// not asked for. `lost` counts samples whose copies turn out to be of no use.
std::shared_ptr<const StagedPictures> open_staged(const std::filesystem::path& folder,
                                                  const std::vector<Pack>& packs,
                                                  const Source& source,
                                                  std::shared_ptr<std::atomic<std::int64_t>> lost);

}  // namespace hpcai::data::staging
