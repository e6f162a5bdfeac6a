// SPDX-License-Identifier: Apache-2.0
#include "search_checkpoints.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/results/launch_file.hpp>
#include <hpcai/results/result_layout.hpp>

namespace hpcai::group {
namespace {

constexpr const char* kFirstStep = "first_step";  // of the log in a checkpoint
constexpr double kStopSeconds = 2;                // from a stop request to the end of the group
constexpr double kMaxCallsPerPoll = 1000;

}  // namespace

SearchCheckpoints::SearchCheckpoints(const GroupTraining& training, ExtraState extra_state)
    : training_(training),
      extra_state_(std::move(extra_state)),
      location_{
          results::checkpoint_directory(training.context.output, training.context.place.group),
          results::config_digest(training.context), training.group.rank(), training.group.size()},
      launch_id_(std::chrono::duration_cast<std::chrono::microseconds>(
                     std::chrono::system_clock::now().time_since_epoch())
                     .count()) {
    training.group.broadcast(std::as_writable_bytes(std::span(&launch_id_, 1)), 0);
}

void SearchCheckpoints::write(std::int64_t steps) {
    const std::vector<std::int64_t> before = chain_;
    const auto begin_of_last = [this] { return chain_.size() < 2 ? 0 : chain_[chain_.size() - 2]; };
    while (!chain_.empty() && chain_.back() - begin_of_last() <= steps - chain_.back())
        chain_.pop_back();
    const std::int64_t first = finished_steps();
    chain_.push_back(steps);
    comm::collective_try(training_.group, [&] {
        training::Checkpoint checkpoint;
        checkpoint.step = steps;
        checkpoint.launch_id = launch_id_;
        checkpoint.snapshot.put_numbers(kFirstStep, {static_cast<double>(first)});
        training_.steps.save(checkpoint.snapshot, first);
        extra_state_.save(checkpoint.snapshot);
        training::write_checkpoint(location_, checkpoint);
    });
    if (training_.group.rank() != 0) return;
    std::vector<std::int64_t> kept = before;
    kept.insert(kept.end(), chain_.begin(), chain_.end());
    training::remove_checkpoints_except(location_.folder, kept);
}

void SearchCheckpoints::restore(std::int64_t steps) {
    chain_.clear();
    comm::collective_try(training_.group, [&] {
        std::vector<training::Checkpoint> newest_first;
        std::vector<std::int64_t> firsts;
        for (std::int64_t step = steps; step > 0; step = firsts.back()) {
            newest_first.push_back(training::read_checkpoint(location_, step));
            const training::Snapshot& found = newest_first.back().snapshot;
            firsts.push_back(
                found.integer(kFirstStep, found.numbers(kFirstStep, 1)[0], 0, step - 1));
        }
        for (std::size_t index = firsts.size(); index-- > 0;) {
            const training::Checkpoint& part = newest_first[index];
            training_.steps.restore(part.snapshot, part.step, firsts[index]);
            chain_.push_back(part.step);
        }
        extra_state_.restore(newest_first.front().snapshot);
    });
}

double SearchCheckpoints::stop_request() const {
    const context::RunContext& context = training_.context;
    const double signalled = signalled_request();
    const double limit = context.config.run.time_limit_seconds;
    if (signalled != kContinue || limit == 0) return signalled;
    const double latest_seconds = limit - std::min(kStopSeconds + longest_pause_, limit / 2);
    return context.launch.since_start.seconds() > latest_seconds ? kTimeLimit : kContinue;
}

/// Returns the highest request of all ranks. Sets the next poll about a second ahead, because each
/// poll costs a small all-reduce.
double SearchCheckpoints::agree_on_request() {
    const double seconds = since_poll_.seconds();
    longest_pause_ = std::max(longest_pause_, seconds);
    std::array<double, 2> maxima{stop_request(),
                                 seconds / static_cast<double>(std::max<std::int64_t>(calls_, 1))};
    training_.group.all_reduce_max(maxima);
    const auto [request, call_seconds] = maxima;
    calls_ = 0;
    calls_per_poll_ = static_cast<std::int64_t>(
        std::clamp(kSecondsBetweenPolls / std::max(call_seconds, 1e-9), 1.0, kMaxCallsPerPoll));
    since_poll_.restart();
    return request;
}

void SearchCheckpoints::after_results_read(training::Trainer&, std::int64_t) {
    if (++calls_ < calls_per_poll_) return;
    const double request = agree_on_request();
    if (request != kContinue) stop(request);
}

/// The next steps may be those of another model, so their first one polls again and is timed.
void SearchCheckpoints::poll() {
    const double request = agree_on_request();
    calls_per_poll_ = 1;
    if (request != kContinue) stop(request);
}

void SearchCheckpoints::stop(double request) {
    training_.watch.end();
    const context::RunContext& context = training_.context;
    const bool is_terminated = request == kTerminate && context.launch.exit_ends_others;
    training_.steps.truncate(finished_steps());
    training_.progress.forget_steps_after(finished_steps());
    throw GroupStop(
        fmt::format("stopped after step {}, the end of a trial, by {}", finished_steps(),
                    cause_of(request, context.config.run.time_limit_seconds)),
        is_terminated ? ProgressState::terminated : ProgressState::stopped, 0);
}

}  // namespace hpcai::group
