// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hpcai::data {

/// Picture files of a set in the packs of a stage, as a DataDuplicator has copied them. Safe to use
/// from many threads.
class StagedPictures {
public:
    struct State;
    explicit StagedPictures(std::unique_ptr<State> state);
    ~StagedPictures();
    StagedPictures(const StagedPictures&) = delete;
    StagedPictures& operator=(const StagedPictures&) = delete;

    /// The bytes of a sample's file; none where the stage does not have it. A copy that cannot be
    /// read or, compared at the first reading of a sample, whose SHA-256 is not that of what was
    /// copied is none from then on, and counted by LocalStage::lost_copies().
    std::optional<std::vector<std::uint8_t>> read(std::uint32_t sample) const;

private:
    std::unique_ptr<State> state_;
};

}  // namespace hpcai::data
