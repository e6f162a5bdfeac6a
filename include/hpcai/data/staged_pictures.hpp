// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace hpcai::data {

/// Picture files of a set in the packs of a stage, as a DataDuplicator has copied them. Safe to use
/// from many threads.
class StagedPictures {
public:
    virtual ~StagedPictures() = default;

    /// The bytes of a sample's file; none where the stage does not have it. A copy that cannot be
    /// read or, compared at the first reading of a sample, whose SHA-256 is not that of what was
    /// copied is none from then on, and counted by LocalStage::lost_copies().
    virtual std::optional<std::vector<std::uint8_t>> read(std::uint32_t sample) const = 0;
};

}  // namespace hpcai::data
