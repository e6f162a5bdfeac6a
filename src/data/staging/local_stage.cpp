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

std::int64_t LocalStage::lost_copies() const {
    return state_ == nullptr ? 0 : state_->lost->load();
}

void LocalStage::leave(bool completed) noexcept {
    const std::unique_ptr<State> state = std::move(state_);
    if (state == nullptr) return;
    try {
        if (completed) state->folder.note_completed(state->node_rank);
        state->folder.unlock();  // of two that leave at once, one has to get it alone
        if (!state->folder.lock_alone()) return;  // the run's other ranks on the node still read
        const bool all_completed = completed && state->folder.all_completed();
        if (is_removed(state->cleanup, all_completed)) state->folder.remove();
    } catch (const std::exception&) {
        return;  // the copies stay, which costs room and nothing else
    }
}

}  // namespace hpcai::data
