// SPDX-License-Identifier: Apache-2.0
#include "group_checkpoints.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>
#include <signal.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/stop_signals.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/result_layout.hpp>

namespace hpcai::group {
namespace {

constexpr double kSecondsBetweenPolls = 1;
constexpr double kMaxStepsBetweenPolls = 1000;

// Requests in ascending priority; the strongest request of all ranks counts.
constexpr double kContinue = 0, kTimeLimit = 1, kTerminate = 2, kInterrupt = 3, kUserSignal = 4;

std::string cause_of(double request, double limit_seconds) {
    if (request == kUserSignal) return "SIGUSR1";
    if (request == kInterrupt) return "SIGINT";
    if (request == kTerminate) return "SIGTERM";
    return fmt::format("run.time_limit_seconds {}", limit_seconds);
}

std::int64_t microseconds_since_1970() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

/// The attempt of a rank to read a checkpoint.
struct GroupCheckpoints::Attempt {
    std::string failure;  // empty if it succeeded
    std::int64_t program = 0;
};

GroupCheckpoints::GroupCheckpoints(const context::RunContext& context, comm::Communicator& group,
                                   Logger& log, GroupWatch& watch, CheckpointContent content)
    : context_(context),
      group_(group),
      log_(log),
      watch_(watch),
      content_(std::move(content)),
      place_{results::checkpoint_directory(context.output, context.place.group),
             results::config_digest(context), group.rank(), group.size()},
      program_(microseconds_since_1970()) {
    group_.broadcast(std::as_writable_bytes(std::span(&program_, 1)), 0);
}

std::int64_t GroupCheckpoints::sum(std::int64_t mine) {
    group_.all_reduce_sum(std::span(&mine, 1));
    return mine;
}

GroupCheckpoints::Attempt GroupCheckpoints::attempt(training::Trainer& trainer, std::int64_t step) {
    try {
        const training::Checkpoint found = training::read_checkpoint(place_, step);
        trainer.restore(found.snapshot);
        content_.restore(found.snapshot);
        return {"", found.program};
    } catch (const std::exception& error) {
        return {error.what(), 0};
    }
}

/// Returns whether all ranks have read a checkpoint that the same launch of the run wrote. Files of
/// two launches may not match.
bool GroupCheckpoints::holds_everywhere(const Attempt& attempt) {
    if (sum(attempt.failure.empty() ? 0 : 1) > 0) return false;
    const auto program = static_cast<double>(attempt.program);
    std::array<double, 2> ends{program, -program};
    group_.all_reduce_max(ends);
    return ends[0] == -ends[1];
}

/// Returns whether the checkpoint was complete once. A missing folder counts as complete, because
/// it was deleted later. A rank whose folder has no marker had not finished writing.
bool GroupCheckpoints::was_whole(std::int64_t step) {
    std::error_code error;
    const bool is_seen = std::filesystem::exists(training::checkpoint_folder(place_, step), error);
    const bool is_marked = training::has_marker(place_, step);
    const std::int64_t unseen = sum(is_seen ? 0 : 1);
    const std::int64_t unmarked = sum(is_marked ? 0 : 1);
    return unseen > 0 || unmarked == 0;
}

/// Logs the failures of all ranks at the leader, which alone has a log file.
void GroupCheckpoints::log_damage(std::int64_t step, const Attempt& attempt) {
    constexpr std::size_t kMaxNamed = 4;
    std::vector<std::string> failures = comm::gather_strings(group_, attempt.failure);
    if (group_.rank() != 0) return;
    std::erase(failures, "");
    if (failures.empty()) failures.emplace_back("it is not complete on all ranks");
    for (std::size_t i = 0; i < std::min(failures.size(), kMaxNamed); ++i) {
        log_.warn("the checkpoint of step {} is not used: {}", step, failures[i]);
    }
    if (failures.size() <= kMaxNamed) return;
    log_.warn("the checkpoint of step {}: {} more ranks cannot use theirs", step,
              failures.size() - kMaxNamed);
}

/// Throws on all ranks. `failure` is the failure of this rank and may be empty.
void GroupCheckpoints::reject_all(const std::string& failure) {
    const auto rejection = [&](const std::string& why) {
        return Error(ExitCode::data,
                     fmt::format("'{}' has checkpoints but none that can be used: {}; if they "
                                 "cannot be restored, remove that folder to train group {} from "
                                 "the beginning",
                                 place_.folder.string(), why, context_.place.group));
    };
    comm::collective_try(group_, [&] {
        if (!failure.empty()) throw rejection(failure);
    });
    throw rejection("the files of the ranks are of different programs");
}

std::int64_t GroupCheckpoints::restore(training::Trainer& trainer) {
    std::vector<std::int64_t> steps;
    comm::collective_try(group_, [&] {
        if (group_.rank() == 0) steps = training::list_checkpoints(place_.folder);
    });
    steps = comm::broadcast(group_, std::move(steps));
    training::Snapshot beginning;
    trainer.save(beginning);
    content_.save(beginning);
    std::optional<std::string> lost;  // why the newest complete checkpoint is not used
    for (const std::int64_t step : steps) {
        const Attempt found = attempt(trainer, step);
        if (holds_everywhere(found)) {
            trainer.broadcast_parameters();
            last_whole_ = step;
            last_poll_ = step;
            if (group_.rank() == 0) log_.info("resumes from the checkpoint of step {}", step);
            return step;
        }
        log_damage(step, found);
        if (was_whole(step) && !lost) lost = found.failure;
    }
    if (lost) reject_all(*lost);
    trainer.restore(beginning);
    content_.restore(beginning);
    trainer.broadcast_parameters();
    if (group_.rank() == 0) log_.warn("there is no complete checkpoint: trains from the beginning");
    return 0;
}

void GroupCheckpoints::pause_ended(std::int64_t steps_done, double seconds) {
    if (!pauses_.is_due(steps_done)) return;
    pauses_.took(seconds);
    since_poll_.restart();  // the pause is not part of the time between polls
}

bool GroupCheckpoints::needs_results(std::int64_t steps_done) const {
    const int every = context_.config.run.checkpoint_steps;
    return every > 0 && steps_done % every == 0;
}

/// Returns whether run.checkpoint_seconds applies after this step.
bool GroupCheckpoints::may_be_old(std::int64_t steps_done) const {
    const config::RunConfig& run = context_.config.run;
    return run.checkpoint_steps == 0 && run.checkpoint_seconds > 0 &&
           steps_done % steps_per_epoch_ == 0;
}

void GroupCheckpoints::after_reading(training::Trainer& trainer, std::int64_t steps_done) {
    if (needs_results(steps_done)) checkpoint(trainer, steps_done);
    if (steps_done < next_poll_ && !pauses_.is_due(steps_done) && !may_be_old(steps_done)) return;
    const auto [request, age_seconds] = agree(trainer, steps_done);
    if (request != kContinue) stop(trainer, steps_done, request);
    if (may_be_old(steps_done) && age_seconds >= context_.config.run.checkpoint_seconds) {
        checkpoint(trainer, steps_done);
    }
}

void GroupCheckpoints::checkpoint(training::Trainer& trainer, std::int64_t steps_done) {
    const Stopwatch since_begin;
    watch_.pause("checkpoint", watch_.checkpoint_seconds());
    finish_write();
    const Stopwatch copying;
    trainer.check_state();
    auto checkpoint = std::make_shared<training::Checkpoint>();
    checkpoint->step = steps_done;
    checkpoint->program = program_;
    trainer.save(checkpoint->snapshot);
    content_.save(checkpoint->snapshot);
    being_written_ = steps_done;
    write_.start([place = place_, checkpoint = std::move(checkpoint)] {
        training::write_checkpoint(place, *checkpoint);
    });
    watch_.resume();
    since_checkpoint_.restart();
    copy_seconds_ = std::max(copy_seconds_, copying.seconds());
    exposed_seconds_ += since_begin.seconds();
    if (group_.rank() != 0) return;
    log_.info("checkpoint of step {} begun; checkpoints have delayed the steps by {:.3f} s",
              steps_done, exposed_seconds_);
}

/// Waits for the current write on all ranks, then removes all checkpoints except the last two
/// complete ones: older ones, and incomplete ones of an earlier launch, also of later steps.
/// Returns why the write failed; empty if no rank failed. Each rank logs its own failure.
std::string GroupCheckpoints::finish_write() {
    if (!being_written_) return "";
    std::string failure = write_.wait();
    write_seconds_ = std::max(write_seconds_, write_.seconds());
    if (!failure.empty()) {
        log_.warn("the checkpoint of step {} could not be written: {}", *being_written_, failure);
    }
    const bool is_whole = sum(failure.empty() ? 0 : 1) == 0;
    const std::int64_t step = *std::exchange(being_written_, std::nullopt);
    if (!is_whole) {
        if (group_.rank() == 0 &&
            step != last_whole_) {  // the incomplete files would fill the disk
            std::error_code error;
            std::filesystem::remove_all(training::checkpoint_folder(place_, step), error);
        }
        return failure.empty() ? "another rank could not write its part" : failure;
    }
    const auto before = std::exchange(last_whole_, step);
    if (group_.rank() != 0) return "";
    log_.info("checkpoint of step {} is complete; rank 0 wrote its part in {:.3f} s", step,
              write_.seconds());
    training::remove_checkpoints_except(place_.folder, before.value_or(step), step);
    return "";
}

/// An agreement costs a small all-reduce, so it does not follow each short step.
GroupCheckpoints::Agreement GroupCheckpoints::agree(training::Trainer& trainer,
                                                    std::int64_t steps_done) {
    const double steps = static_cast<double>(std::max<std::int64_t>(steps_done - last_poll_, 1));
    const double seconds = since_poll_.restart();
    std::array<double, 3> most{local_stop_request(trainer, steps_done), seconds / steps,
                               since_checkpoint_.seconds()};
    group_.all_reduce_max(most);
    if (next_poll_ > 0 && steps_done >= next_poll_) poll_seconds_ = seconds;
    last_poll_ = steps_done;
    const double wait =
        std::clamp(kSecondsBetweenPolls / std::max(most[1], 1e-9), 1.0, kMaxStepsBetweenPolls);
    next_poll_ = steps_done + static_cast<std::int64_t>(wait);
    return {most[0], most[2]};
}

/// Returns the request of this rank. Assumes the same time until the next poll as between the last
/// two.
double GroupCheckpoints::local_stop_request(training::Trainer& trainer,
                                            std::int64_t steps_done) const {
    const int signal = StopSignals::received();
    if (signal == SIGUSR1) return kUserSignal;
    if (signal == SIGINT) return kInterrupt;
    if (signal == SIGTERM) return kTerminate;
    const double limit = context_.config.run.time_limit_seconds;
    if (limit == 0) return kContinue;
    const StopCosts costs{copy_seconds_, write_seconds_,
                          std::max(kSecondsBetweenPolls, poll_seconds_), trainer.saved_bytes()};
    const double last_moment =
        limit - checkpoint_lead_seconds(costs, limit) - pauses_.seconds_after(steps_done);
    return context_.program.since_start.seconds() > last_moment ? kTimeLimit : kContinue;
}

void GroupCheckpoints::stop(training::Trainer& trainer, std::int64_t steps_done, double request) {
    const Stopwatch watch;
    if (being_written_ != steps_done) checkpoint(trainer, steps_done);
    watch_.pause("checkpoint", watch_.checkpoint_seconds());
    const std::string failure = finish_write();
    watch_.end();
    const std::string what = fmt::format("stopped at step {} by {}", steps_done,
                                         cause_of(request, context_.config.run.time_limit_seconds));
    if (!failure.empty()) {
        throw GroupStop(
            fmt::format("{} without its checkpoint, {}; would resume from {}", what, failure,
                        last_whole_ ? fmt::format("step {}", *last_whole_) : "the beginning"),
            ProgressState::unsaved, watch.seconds());
    }
    const bool is_terminated = request == kTerminate && context_.program.exit_ends_others;
    throw GroupStop(what, is_terminated ? ProgressState::terminated : ProgressState::stopped,
                    watch.seconds());
}

}  // namespace hpcai::group
