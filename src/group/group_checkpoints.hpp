// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/base/progress_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/training/checkpoint.hpp>
#include <hpcai/training/trainer.hpp>

#include "checkpoint_lead_time.hpp"
#include "group_watch.hpp"

namespace hpcai::group {

/// What a checkpoint has beside what the Trainer keeps.
struct CheckpointContent {
    std::function<void(training::Snapshot&)> save;
    /// Throws Error(data) naming the array that does not fit.
    std::function<void(const training::Snapshot&)> restore;
};

/// The end of a group that was asked to stop; its code is ExitCode::stopped.
class GroupStop : public Error {
public:
    /// What `status` says of it: stopped, unsaved or terminated, and how long it took.
    GroupStop(const std::string& message, ProgressState state, double seconds)
        : Error(ExitCode::stopped, message), state_(state), seconds_(seconds) {}

    ProgressState state() const { return state_; }
    /// From the step behind which it stopped until the checkpoint was whole, or could not be.
    double seconds() const { return seconds_; }

private:
    ProgressState state_;
    double seconds_;
};

/// The checkpoints of a group, and its end where the run is asked to stop: one on every rank, of
/// which all make the same calls. A checkpoint is copied to host memory between two steps and
/// written behind them; the newest whole one is never removed before another is whole.
class GroupCheckpoints final : public training::BetweenSteps {
public:
    /// What is given outlives it.
    GroupCheckpoints(const context::RunContext& context, comm::Communicator& group, Logger& log,
                     GroupWatch& watch, CheckpointContent content);

    /// Goes on from the newest checkpoint that is whole on all ranks, or, where none has ever been,
    /// from the beginning; the log tells of those that are damaged. Returns the steps done. Throws
    /// Error(data), on all ranks, naming the folder and what is wrong, where checkpoints have been
    /// whole and none can be used. Collective.
    std::int64_t restore(training::Trainer& trainer);

    /// Behind each so many steps comes something that nothing stops, such as an evaluation: a run
    /// that would not have done with it within its time stops before.
    void pauses_every(std::int64_t steps) { pauses_.every(steps); }
    /// What came behind so many steps took so long.
    void pause_ended(std::int64_t steps_done, double seconds);

    bool needs_results(std::int64_t steps_done) const override;
    /// Where one is due, begins a checkpoint, of what Trainer::examine() finds good. About once a
    /// second looks whether a rank was asked to stop; then writes one and throws GroupStop, on all
    /// ranks: `terminated` by SIGTERM where an exit ends the job.
    void after_reading(training::Trainer& trainer, std::int64_t steps_done) override;

private:
    struct Attempt;

    Attempt attempt(training::Trainer& trainer, std::int64_t step);
    bool holds_everywhere(const Attempt& attempt);
    bool was_whole(std::int64_t step);
    [[noreturn]] void refuse_all(const std::string& failure);
    void tell_of_damage(std::int64_t step, const Attempt& attempt);
    void checkpoint(training::Trainer& trainer, std::int64_t steps_done);
    std::string finish_write();
    double agree_to_stop(training::Trainer& trainer, std::int64_t steps_done);
    double my_wish(training::Trainer& trainer, std::int64_t steps_done) const;
    [[noreturn]] void stop(training::Trainer& trainer, std::int64_t steps_done, double wish);
    std::int64_t sum(std::int64_t mine);

    const context::RunContext& context_;
    comm::Communicator& group_;
    Logger& log_;
    GroupWatch& watch_;
    CheckpointContent content_;
    training::CheckpointPlace place_;
    std::int64_t program_ = 0;
    training::BackgroundWork write_;
    std::optional<std::int64_t> being_written_, last_whole_;
    std::int64_t next_look_ = 0, last_look_ = 0;
    Stopwatch since_look_;
    double held_up_seconds_ = 0;  // of the steps, by checkpoints
    double copy_seconds_ = 0;     // of the longest copy to host memory
    double write_seconds_ = 0;    // of the longest write; 0: there was none
    double look_seconds_ = 0;     // between the last two looks; 0: there was one at most
    UninterruptiblePhases pauses_;
};

}  // namespace hpcai::group
