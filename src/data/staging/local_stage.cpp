// SPDX-License-Identifier: Apache-2.0
#include "local_stage.hpp"

namespace hpcai::data {

namespace {

bool is_removed(config::StagingCleanup cleanup, bool all_completed) {
    switch (cleanup) {
        case config::StagingCleanup::keep:
            return false;
        case config::StagingCleanup::remove:
            return true;
        case config::StagingCleanup::remove_on_success:
            return all_completed;
        case config::StagingCleanup::remove_on_failure:
            return !all_completed;
    }
    return false;
}

}  // namespace

LocalStage::LocalStage(std::unique_ptr<State> state) : state_(std::move(state)) {}

LocalStage::~LocalStage() {
    leave(false);
}

void LocalStage::leave(bool completed) noexcept {
    const std::unique_ptr<State> state = std::move(state_);
    if (state == nullptr) return;
    try {
        if (completed) state->folder.note_completed(state->node_rank);
        // Whoever still reads, of this run or another, holds the lock shared.
        if (!state->folder.lock_alone()) return;
        const bool all_completed = state->folder.completed() == state->node_ranks;
        if (is_removed(state->cleanup, all_completed)) state->folder.remove();
    } catch (const std::exception&) {
        return;  // the copies stay, which costs room and nothing else
    }
}

}  // namespace hpcai::data
