// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/clock.hpp>
#include <hpcai/training/checkpoint.hpp>

#include "group_checkpoints.hpp"
#include "group_training.hpp"
#include "stop_request.hpp"

namespace hpcai::group {

/// Writes checkpoints of an architecture search between two trials, and ends the group when the run
/// is asked to stop. A checkpoint has the record and the log of the newest steps, not the model: a
/// resumed search begins the unfinished trial again. Every rank has an object.
class SearchCheckpoints final : public training::StepCallback {
public:
    /// All arguments outlive the object.
    SearchCheckpoints(const GroupTraining& training, ExtraState extra_state);

    /// Writes the checkpoint after `steps` steps and removes those that neither this one nor the
    /// previous one needs. Collective; a failure on one rank is thrown on all.
    void write(std::int64_t steps);
    /// Restores the checkpoint of `steps` steps. Throws Error(data) on all ranks if a rank cannot
    /// restore it; another call may then restore an older checkpoint. Collective.
    void restore(std::int64_t steps);

    bool must_read_results(std::int64_t) const override { return false; }
    /// Like poll(), but about once a second.
    void after_results_read(training::Trainer& trainer, std::int64_t steps_done) override;
    /// The ranks agree whether to stop; if so, throws GroupStop on all ranks. Call it between two
    /// epochs and two trials. Collective.
    void poll();
    /// Whether this rank is asked to stop. Not collective.
    bool is_stop_requested() const { return stop_request() != kContinue; }
    /// Ends a wait that polled is_stop_requested(). It delays no stop, so it counts as no pause.
    void end_wait() { since_poll_.restart(); }

private:
    std::int64_t finished_steps() const { return chain_.empty() ? 0 : chain_.back(); }
    double stop_request() const;
    double agree_on_request();
    [[noreturn]] void stop(double request);

    const GroupTraining& training_;
    ExtraState extra_state_;
    training::CheckpointLocation location_;
    std::int64_t launch_id_;
    // Steps of the checkpoints, ascending, whose logs together cover all finished trials. Each log
    // has more steps than the next. The number of logs grows with the logarithm of all steps.
    std::vector<std::int64_t> chain_;
    Stopwatch since_poll_;
    std::int64_t calls_ = 0;           // of after_results_read() since the last poll
    std::int64_t calls_per_poll_ = 1;  // equal on all ranks
    double longest_pause_ = 0;         // longest time between two polls, in seconds
};

}  // namespace hpcai::group
