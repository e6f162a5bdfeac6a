// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/training/checkpoint.hpp>
#include <hpcai/training/trainer.hpp>

#include "group_watch.hpp"

namespace hpcai::group {

/// What determines the duration of a stop: the wait for the next poll, then a checkpoint.
struct StopCosts {
    double copy_seconds = 0;      // longest copy to host memory so far
    double write_seconds = 0;     // longest write so far; 0: none yet
    double poll_seconds = 0;      // between two polls
    std::size_t first_bytes = 0;  // size of this rank's first checkpoint
};

/// Returns how many seconds before run.time_limit_seconds a run must begin to stop. The result is
/// at most half of the limit, because a short limit would otherwise leave no time to train.
inline double checkpoint_lead_seconds(const StopCosts& costs, double limit_seconds) {
    // Assumed for the first write, to a busy file system.
    constexpr double kFirstWriteSeconds = 2;
    constexpr double kFirstWriteBytesPerSecond = 32.0 * (1 << 20);
    constexpr double kMaxShare = 0.5;  // of the limit
    // The previous write may still run when the final checkpoint begins.
    const double write = costs.write_seconds > 0
                             ? 2 * costs.write_seconds
                             : kFirstWriteSeconds + static_cast<double>(costs.first_bytes) /
                                                        kFirstWriteBytesPerSecond;
    return std::min(costs.copy_seconds + write + 2 * costs.poll_seconds, kMaxShare * limit_seconds);
}

/// Phases in which the run cannot stop, such as evaluations, at a fixed interval of steps.
class UninterruptiblePhases {
public:
    void set_interval(std::int64_t steps) { steps_ = steps; }  // 0: there is no such phase

    void add(double seconds) { longest_seconds_ = std::max(longest_seconds_, seconds); }

    bool is_due(std::int64_t steps_done) const { return steps_ > 0 && steps_done % steps_ == 0; }

    /// Returns the seconds of the longest phase so far if one follows `steps_done` steps; else 0.
    double seconds_after(std::int64_t steps_done) const {
        return is_due(steps_done) ? longest_seconds_ : 0;
    }

private:
    std::int64_t steps_ = 0;
    double longest_seconds_ = 0;
};

/// Functions that save and restore the part of a checkpoint that is not the Trainer's state.
struct ExtraState {
    std::function<void(training::Snapshot&)> save;
    /// Throws Error(data) naming the array that does not fit.
    std::function<void(const training::Snapshot&)> restore;
};

/// The end of a group that was asked to stop; its code is ExitCode::stopped.
class GroupStop : public Error {
public:
    /// `state` is stopped, unsaved or terminated.
    GroupStop(const std::string& message, ProgressState state, double seconds)
        : Error(ExitCode::stopped, message), state_(state), seconds_(seconds) {}

    ProgressState state() const { return state_; }
    /// Seconds from the last step until the checkpoint was complete or had failed.
    double seconds() const { return seconds_; }

private:
    ProgressState state_;
    double seconds_;
};

/// Writes the checkpoints of a group and ends the group when the run is asked to stop. Every rank
/// has an object, and all ranks make the same calls. A checkpoint is copied to host memory between
/// two steps and written during later steps. The two newest complete checkpoints are kept, and
/// those of config::kept_steps().
class GroupCheckpoints final : public training::StepCallback {
public:
    /// All arguments outlive the object.
    GroupCheckpoints(const context::RunContext& context, comm::Communicator& group, Logger& log,
                     GroupWatch& watch, ExtraState extra_state);

    /// Restores the newest checkpoint that is complete on all ranks, or the initial state if no
    /// checkpoint was ever complete. Logs unusable checkpoints. Returns the number of steps done.
    /// Throws Error(data) on all ranks, naming folder and damage, if all complete checkpoints are
    /// damaged. Collective.
    std::int64_t restore(training::Trainer& trainer);

    /// Sets the steps of an epoch, and after how many epochs a phase such as an evaluation follows;
    /// 0: never. The run stops before a phase that would exceed run.time_limit_seconds.
    void set_epochs(std::int64_t steps_per_epoch, int epochs_per_phase) {
        steps_per_epoch_ = steps_per_epoch;
        phases_.set_interval(steps_per_epoch * epochs_per_phase);
        kept_steps_ = config::kept_steps(context_.config, steps_per_epoch);
    }
    /// Call it after each epoch, with the duration of the phase. Does nothing if no phase was due.
    void phase_ended(std::int64_t steps_done, double seconds);

    bool must_read_results(std::int64_t steps_done) const override;
    /// Begins a checkpoint if one is due, after Trainer::check_state() accepts the state. About
    /// once a second, all ranks agree whether to stop. If so, writes a checkpoint and throws
    /// GroupStop on all ranks. GroupStop::state() is `unsaved` if the write failed; `terminated` if
    /// SIGTERM stops a run in which the exit of one rank ends the others; else `stopped`.
    void after_results_read(training::Trainer& trainer, std::int64_t steps_done) override;

    /// Completes the checkpoint of the last step, unless checkpoints are off. Call it after the
    /// final audit. The checkpoint delays the evaluation, not the training. Collective.
    void finish();

    /// Seconds that checkpoints have delayed the steps of this launch.
    double delay_seconds() const { return delay_seconds_; }

private:
    struct Attempt;
    /// What all ranks know after agree_on_request().
    struct Agreement {
        double request = 0;      // the one of highest priority: kContinue etc. (stop_request.hpp)
        double age_seconds = 0;  // longest time since the last checkpoint
    };

    Attempt try_restore(training::Trainer& trainer, std::int64_t step);
    bool is_restored_everywhere(const Attempt& attempt);
    bool was_complete(std::int64_t step);
    [[noreturn]] void reject_checkpoints(const std::string& failure);
    void log_unusable(std::int64_t step, const Attempt& attempt);
    void checkpoint(training::Trainer& trainer, std::int64_t steps_done);
    std::shared_ptr<training::Checkpoint> copy_state(training::Trainer& trainer,
                                                     std::int64_t steps_done);
    void begin_write(std::shared_ptr<training::Checkpoint> checkpoint);
    std::string finish_write();
    bool checks_age(std::int64_t steps_done) const;
    Agreement agree_on_request(training::Trainer& trainer, std::int64_t steps_done);
    double local_stop_request(training::Trainer& trainer, std::int64_t steps_done) const;
    [[noreturn]] void stop(training::Trainer& trainer, std::int64_t steps_done, double request);
    std::int64_t sum_over_ranks(std::int64_t mine);

    const context::RunContext& context_;
    comm::Communicator& group_;
    Logger& log_;
    GroupWatch& watch_;
    ExtraState extra_state_;
    training::CheckpointLocation location_;
    std::int64_t launch_id_;
    training::BackgroundWork write_;
    std::optional<std::int64_t> pending_step_, last_complete_step_;
    std::shared_ptr<training::Checkpoint> end_of_training_;  // written after the final audit
    std::int64_t next_poll_step_ = 0, last_poll_step_ = 0;
    std::int64_t steps_per_epoch_ = 1;
    std::vector<std::int64_t> kept_steps_;
    Stopwatch since_poll_;
    Stopwatch since_checkpoint_;  // or since the construction, before the first one
    double delay_seconds_ = 0;    // by which checkpoints delayed steps
    StopCosts costs_;             // poll_seconds: between the last two polls; 0: fewer than two
    UninterruptiblePhases phases_;
};

}  // namespace hpcai::group
