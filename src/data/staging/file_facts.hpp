// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <hpcai/storage/descriptor.hpp>

#include "pack_plan.hpp"

namespace hpcai::data::staging {

/// Of what `path` leads to, found without opening it.
FileFacts facts_of(const std::filesystem::path& path);
FileFacts facts_of(const storage::Descriptor& file);

}  // namespace hpcai::data::staging
