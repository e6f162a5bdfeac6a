// SPDX-License-Identifier: Apache-2.0
#include "group_checkpoints.hpp"

#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/result_layout.hpp>

#include "stop_request.hpp"

namespace hpcai::group {
namespace {

constexpr double kMaxStepsBetweenPolls = 1000;

}  // namespace

struct GroupCheckpoints::Attempt {  // the result of try_restore() on this rank
    std::string failure;            // empty if the rank has restored its checkpoint
    std::int64_t launch_id = 0;
};

GroupCheckpoints::GroupCheckpoints(const context::RunContext& context, comm::Communicator& group,
                                   Logger& log, GroupWatch& watch, ExtraState extra_state)
    : context_(context),
      group_(group),
      log_(log),
      watch_(watch),
      extra_state_(std::move(extra_state)),
      location_{results::checkpoint_directory(context.output, context.place.group),
                results::config_digest(context), group.rank(), group.size()},
      launch_id_(std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()) {
    group_.broadcast(std::as_writable_bytes(std::span(&launch_id_, 1)), 0);
}

std::int64_t GroupCheckpoints::sum_over_ranks(std::int64_t mine) {
    group_.all_reduce_sum(std::span(&mine, 1));
    return mine;
}

GroupCheckpoints::Attempt GroupCheckpoints::try_restore(training::Trainer& trainer,
                                                        std::int64_t step) {
    try {
        const training::Checkpoint found = training::read_checkpoint(location_, step);
        trainer.restore(found.snapshot);
        extra_state_.restore(found.snapshot);
        return {"", found.launch_id};
    } catch (const std::exception& error) {
        return {error.what(), 0};
    }
}

/// Returns whether all ranks have restored a checkpoint of the same launch. Files of two launches
/// do not fit together.
bool GroupCheckpoints::is_restored_everywhere(const Attempt& attempt) {
    if (sum_over_ranks(attempt.failure.empty() ? 0 : 1) > 0) return false;
    const auto launch_id = static_cast<double>(attempt.launch_id);
    std::array<double, 2> extremes{launch_id, -launch_id};  // maximum, -minimum
    group_.all_reduce_max(extremes);
    return extremes[0] == -extremes[1];
}

/// Returns whether the checkpoint has ever been complete. A folder that lacks a rank's marker was
/// never complete. A folder that the leader listed but a rank does not find counts as a complete
/// one that was deleted.
bool GroupCheckpoints::was_complete(std::int64_t step) {
    std::error_code error;
    const bool exists = fs::exists(training::checkpoint_folder(location_, step), error);
    const std::int64_t missing = sum_over_ranks(exists ? 0 : 1);
    const std::int64_t unmarked = sum_over_ranks(training::has_marker(location_, step) ? 0 : 1);
    return missing > 0 || unmarked == 0;
}

/// Logs on the leader why ranks cannot use the checkpoint. Only the leader has a log file.
void GroupCheckpoints::log_unusable(std::int64_t step, const Attempt& attempt) {
    constexpr std::size_t kMaxNamed = 4;
    std::vector<std::string> failures = comm::gather_strings(group_, attempt.failure);
    if (group_.rank() != 0) return;
    std::erase(failures, "");
    if (failures.empty()) failures.emplace_back("its files are from different launches");
    for (std::size_t i = 0; i < std::min(failures.size(), kMaxNamed); ++i) {
        log_.warn("the checkpoint of step {} cannot be used: {}", step, failures[i]);
    }
    if (failures.size() <= kMaxNamed) return;
    log_.warn("the checkpoint of step {} has unusable files on {}", step,
              counted(std::ssize(failures) - std::int64_t{kMaxNamed}, "more rank"));
}

/// Throws on all ranks. `failure` is the failure of this rank and may be empty.
void GroupCheckpoints::reject_checkpoints(const std::string& failure) {
    const auto rejection = [&](const std::string& why) {
        return Error(ExitCode::data,
                     fmt::format("'{}': no checkpoint in this folder can be used: {}; repair its "
                                 "files, or remove the folder to train group {} from the "
                                 "beginning",
                                 location_.folder.string(), why, context_.place.group));
    };
    comm::collective_try(group_, [&] {
        if (!failure.empty()) throw rejection(failure);
    });
    throw rejection("the ranks' files are from different launches");
}

std::int64_t GroupCheckpoints::restore(training::Trainer& trainer) {
    std::vector<std::int64_t> steps;
    comm::collective_try(group_, [&] {
        if (group_.rank() == 0) steps = training::list_checkpoints(location_.folder);
    });
    steps = comm::broadcast(group_, std::move(steps));
    training::Snapshot beginning;
    trainer.save(beginning);
    extra_state_.save(beginning);
    std::optional<std::string> damage;  // of the newest checkpoint that was complete
    for (const std::int64_t step : steps) {
        const Attempt found = try_restore(trainer, step);
        if (is_restored_everywhere(found)) {
            trainer.broadcast_parameters();
            last_complete_step_ = step;
            last_poll_step_ = step;
            if (group_.rank() == 0) log_.info("training resumes from step {}", step);
            return step;
        }
        log_unusable(step, found);
        if (was_complete(step) && !damage) damage = found.failure;
    }
    if (damage) reject_checkpoints(*damage);
    trainer.restore(beginning);
    extra_state_.restore(beginning);
    trainer.broadcast_parameters();
    if (group_.rank() == 0) log_.warn("no complete checkpoint exists; training starts at step 0");
    return 0;
}

void GroupCheckpoints::phase_ended(std::int64_t steps_done, double seconds) {
    if (!phases_.is_due(steps_done)) return;
    phases_.add(seconds);
    since_poll_.restart();  // the phase is not part of the time between polls
}

bool GroupCheckpoints::must_read_results(std::int64_t steps_done) const {
    const int every = context_.config.run.checkpoint_steps;
    return (every > 0 && steps_done % every == 0) ||
           std::ranges::count(kept_steps_, steps_done) > 0;
}

/// Whether run.checkpoint_seconds is in use and this step ends an epoch.
bool GroupCheckpoints::checks_age(std::int64_t steps_done) const {
    const config::RunConfig& run = context_.config.run;
    return run.checkpoint_steps == 0 && run.checkpoint_seconds > 0 &&
           steps_done % steps_per_epoch_ == 0;
}

void GroupCheckpoints::after_results_read(training::Trainer& trainer, std::int64_t steps_done) {
    if (must_read_results(steps_done)) checkpoint(trainer, steps_done);
    const config::RunConfig& run = context_.config.run;
    if (steps_done >= next_poll_step_ || phases_.is_due(steps_done) || checks_age(steps_done)) {
        const auto [request, age_seconds] = agree_on_request(trainer, steps_done);
        if (request != kContinue) stop(trainer, steps_done, request);
        if (checks_age(steps_done) && age_seconds >= run.checkpoint_seconds &&
            pending_step_ != steps_done) {
            checkpoint(trainer, steps_done);
        }
    }
    const bool has_checkpoints = run.checkpoint_steps > 0 || run.checkpoint_seconds > 0;
    const bool is_last = steps_done == steps_per_epoch_ * context_.config.workload.epochs;
    if (has_checkpoints && is_last && pending_step_ != steps_done) {
        end_of_training_ = copy_state(trainer, steps_done);
    }
}

void GroupCheckpoints::finish() {
    finish_write();
    if (end_of_training_ == nullptr) return;
    begin_write(std::exchange(end_of_training_, nullptr));
    finish_write();
}

std::shared_ptr<training::Checkpoint> GroupCheckpoints::copy_state(training::Trainer& trainer,
                                                                   std::int64_t steps_done) {
    auto checkpoint = std::make_shared<training::Checkpoint>();
    checkpoint->step = steps_done;
    checkpoint->launch_id = launch_id_;
    trainer.save(checkpoint->snapshot);
    extra_state_.save(checkpoint->snapshot);
    return checkpoint;
}

void GroupCheckpoints::begin_write(std::shared_ptr<training::Checkpoint> checkpoint) {
    pending_step_ = checkpoint->step;
    write_.start([location = location_, checkpoint = std::move(checkpoint)] {
        training::write_checkpoint(location, *checkpoint);
    });
}

void GroupCheckpoints::checkpoint(training::Trainer& trainer, std::int64_t steps_done) {
    const Stopwatch since_begin;
    watch_.pause("checkpoint", watch_.checkpoint_timeout_seconds());
    finish_write();
    const Stopwatch copying;
    trainer.check_state();
    begin_write(copy_state(trainer, steps_done));
    watch_.resume();
    since_checkpoint_.restart();
    costs_.copy_seconds = std::max(costs_.copy_seconds, copying.seconds());
    delay_seconds_ += since_begin.seconds();
    if (group_.rank() != 0) return;
    log_.info("writing the checkpoint of step {}; checkpoints have delayed training by {:.3f} s",
              steps_done, delay_seconds_);
}

/// Waits for the current write on all ranks. Then the leader removes the files of a failed write,
/// which would fill the disk, unless this step already had a complete checkpoint. After a complete
/// write, it keeps only the last two complete checkpoints and those of config::kept_steps().
/// Returns why the write failed; empty if no rank failed. Each rank logs its own failure.
std::string GroupCheckpoints::finish_write() {
    if (!pending_step_) return "";
    std::string failure = write_.wait();
    costs_.write_seconds = std::max(costs_.write_seconds, write_.seconds());
    if (!failure.empty()) {
        log_.warn("cannot write the checkpoint of step {}: {}", *pending_step_, failure);
    }
    const bool is_complete = sum_over_ranks(failure.empty() ? 0 : 1) == 0;
    const std::int64_t step = *std::exchange(pending_step_, std::nullopt);
    if (!is_complete) {
        if (group_.rank() == 0 && step != last_complete_step_) {
            std::error_code error;
            std::filesystem::remove_all(training::checkpoint_folder(location_, step), error);
        }
        return failure.empty() ? "another rank could not write its file" : failure;
    }
    const auto before = std::exchange(last_complete_step_, step);
    if (group_.rank() != 0) return "";
    log_.info("the checkpoint of step {} is complete; rank 0 wrote its file in {:.3f} s", step,
              write_.seconds());
    // Checkpoints of later steps are from earlier launches; this launch trains those steps again.
    std::vector<std::int64_t> kept(kept_steps_.begin(),
                                   std::ranges::upper_bound(kept_steps_, step));
    kept.insert(kept.end(), {before.value_or(step), step});
    training::remove_checkpoints_except(location_.folder, kept);
    return "";
}

/// Returns the highest request and age of all ranks. Sets the next poll about a second ahead,
/// because each poll costs a small all-reduce.
GroupCheckpoints::Agreement GroupCheckpoints::agree_on_request(training::Trainer& trainer,
                                                               std::int64_t steps_done) {
    const auto steps = static_cast<double>(std::max<std::int64_t>(steps_done - last_poll_step_, 1));
    const double seconds = since_poll_.restart();
    std::array<double, 3> maxima{local_stop_request(trainer, steps_done), seconds / steps,
                                 since_checkpoint_.seconds()};
    group_.all_reduce_max(maxima);
    const auto [request, step_seconds, age_seconds] = maxima;
    if (next_poll_step_ > 0 && steps_done >= next_poll_step_) costs_.poll_seconds = seconds;
    last_poll_step_ = steps_done;
    const double poll_steps =
        std::clamp(kSecondsBetweenPolls / std::max(step_seconds, 1e-9), 1.0, kMaxStepsBetweenPolls);
    next_poll_step_ = steps_done + static_cast<std::int64_t>(poll_steps);
    return {request, age_seconds};
}

/// Returns the stop request of this rank. Assumes that the interval between polls does not change.
double GroupCheckpoints::local_stop_request(training::Trainer& trainer,
                                            std::int64_t steps_done) const {
    const double signalled = signalled_request();
    const double limit = context_.config.run.time_limit_seconds;
    if (signalled != kContinue || limit == 0) return signalled;
    StopCosts costs = costs_;
    costs.poll_seconds = std::max(kSecondsBetweenPolls, costs.poll_seconds);
    costs.first_bytes = trainer.saved_bytes();
    const double latest_stop_seconds =
        limit - checkpoint_lead_seconds(costs, limit) - phases_.seconds_after(steps_done);
    return context_.launch.since_start.seconds() > latest_stop_seconds ? kTimeLimit : kContinue;
}

void GroupCheckpoints::stop(training::Trainer& trainer, std::int64_t steps_done, double request) {
    const Stopwatch since_stop;
    if (group_.rank() == 0) {
        log_.warn("stopping at a checkpoint; if no STOPPED line follows, see `hpcai500 status {}`",
                  shell_quote(context_.folder().string()));
    }
    if (pending_step_ != steps_done) checkpoint(trainer, steps_done);
    watch_.pause("checkpoint", watch_.checkpoint_timeout_seconds());
    const std::string failure = finish_write();
    watch_.end();
    const std::string what = fmt::format("stopped at step {} by {}", steps_done,
                                         cause_of(request, context_.config.run.time_limit_seconds));
    if (!failure.empty()) {
        throw GroupStop(
            fmt::format("{} without a checkpoint: {}; a resumed run starts from {}", what, failure,
                        last_complete_step_ ? fmt::format("step {}", *last_complete_step_)
                                            : "the beginning"),
            ProgressState::unsaved, since_stop.seconds());
    }
    const bool is_terminated = request == kTerminate && context_.launch.exit_ends_others;
    throw GroupStop(what, is_terminated ? ProgressState::terminated : ProgressState::stopped,
                    since_stop.seconds());
}

}  // namespace hpcai::group
