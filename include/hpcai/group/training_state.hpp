// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/data/resident_pictures.hpp>
#include <hpcai/group/model.hpp>

namespace hpcai::group {

/// The model of one rank and its buffers. It outlives MPI, because MPI may still use its memory
/// after a failure.
struct TrainingState {
    /// Builds the configured model. Throws as Model, and Error(usage) when the device has no room
    /// for data.resident_mib.
    TrainingState(const context::RunContext& context, const context::Resources& resources);
    /// Frees the memory that only training needs.
    void free_training_memory();

    Model model;
    std::unique_ptr<data::ResidentPictures> pictures;  // on the device; null if there are none
    std::unique_ptr<comm::GradientReducer> reducer;    // null until the group trains
};

}  // namespace hpcai::group
