// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <hpcai/morphs/morph.hpp>
#include <hpcai/records/trial_record.hpp>

namespace hpcai::search {

/// Convert records to morphs and back. morphs_of throws Error(data) for an unknown kind.
std::vector<morphs::Morph> morphs_of(std::span<const EditRecord> edits);
std::vector<EditRecord> edits_of(std::span<const morphs::Morph> morphs);

}  // namespace hpcai::search
