// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/report/progress.hpp>

#include "lines.hpp"

namespace hpcai::report {
namespace {

/// A line with group, state, epoch, step, loss, images/s, time left and age of the heartbeat.
std::string progress_line(const auto&... cells) {
    return fmt::format("{:<6}{:<12}{:>7}{:>14}{:>8}{:>9}{:>12}{:>12}\n", cells...);
}

/// The age of a heartbeat; "now" also if the clock of the node that wrote it is ahead.
std::string heartbeat_age(std::int64_t written, std::int64_t now) {
    if (written == 0) return "n/a";
    const double age = static_cast<double>(now) - static_cast<double>(written);
    return age < 1 ? "now" : format_seconds(age);
}

bool is_at_work(const ProgressRecord& progress) {
    return progress.state == ProgressState::training || progress.state == ProgressState::evaluating;
}

std::ptrdiff_t count(const RunProgress& run, ProgressState state) {
    return std::ranges::count_if(run.groups, [&](const GroupProgress& group) {
        return group.progress && group.progress->state == state;
    });
}

std::ptrdiff_t count_stopped(const RunProgress& run) {
    return count(run, ProgressState::stopped) + count(run, ProgressState::terminated) +
           count(run, ProgressState::unsaved);
}

/// Returns true if the records of all groups show an end and no evaluation of the ensemble follows.
bool have_all_ended(const RunProgress& run) {
    const std::ptrdiff_t failed = count(run, ProgressState::failed);
    const std::ptrdiff_t stopped = count_stopped(run);
    const std::ptrdiff_t groups = std::ssize(run.groups);
    const bool will_evaluate = stopped == 0 && failed < groups;
    return groups > 0 && !will_evaluate &&
           stopped + failed + count(run, ProgressState::finished) == groups;
}

/// Returns true if a program holds the lock or, if that is unknown, a group had a recent heartbeat.
bool is_running(const RunProgress& run) {
    const std::optional<std::int64_t> silence = silence_seconds(run);
    return run.is_locked.value_or(silence && *silence < kUnlockedSilenceSeconds);
}

/// Returns the word of a state. No group of a dead run (is_over() or has_died()) trains any more.
std::string_view shown_state(ProgressState state, bool is_dead) {
    return is_dead && state == ProgressState::training ? "interrupted" : word_of(state);
}

std::string line_of(const GroupProgress& group, const RunProgress& run) {
    if (!group.progress) {
        const char* state = group.read_error.empty() ? "not started" : "unreadable";
        return progress_line(group.group, state, "", "", "", "", "", "");
    }
    const ProgressRecord& progress = *group.progress;
    const bool is_dead = is_over(run) || has_died(run);
    const bool has_estimate = is_at_work(progress) && !is_dead && progress.seconds_left.value;
    return progress_line(group.group, shown_state(progress.state, is_dead),
                         fmt::format("{}/{}", progress.epoch, progress.epochs),
                         fmt::format("{}/{}", progress.step, progress.steps),
                         number(progress.loss, "{:.4f}"),
                         number(progress.images_per_second, "{:.1f}"),
                         has_estimate ? format_seconds(*progress.seconds_left.value) : "",
                         heartbeat_age(progress.written_unix_seconds, run.now_unix_seconds));
}

/// Explains a silence by the lock of the directory, which is held, free or unknown.
const char* meaning_of_silence(const std::optional<bool>& is_lock_held) {
    if (!is_lock_held) {
        return "the run has died, hangs, copies samples or evaluates: the lock of its directory "
               "cannot be read";
    }
    return *is_lock_held ? "a program is running: it copies samples, evaluates or hangs"
                         : "the run has died or hangs";
}

const char* word_of(ExitCode code) {
    if (code == ExitCode::stopped) return "STOPPED";
    if (code == ExitCode::internal) return "UNSAVED";
    return code == ExitCode::all_groups_failed ? "FAILED" : "UNFINISHED";
}

}  // namespace

bool have_all_finished(const RunProgress& run) {
    return !run.groups.empty() && count(run, ProgressState::finished) == std::ssize(run.groups);
}

ExitCode exit_code_of(const RunProgress& run) {
    if (run.is_locked == true || !have_all_ended(run)) return ExitCode::watchdog;
    const std::ptrdiff_t failed = count(run, ProgressState::failed);
    const std::ptrdiff_t terminated = count(run, ProgressState::terminated);
    if (count(run, ProgressState::unsaved) > 0) return ExitCode::internal;
    if (failed > 0 && terminated > 0) return ExitCode::watchdog;
    if (terminated + count(run, ProgressState::stopped) > 0) return ExitCode::stopped;
    return ExitCode::all_groups_failed;
}

bool is_over(const RunProgress& run) {
    const bool is_silent = silence_seconds(run).value_or(0) >= kSilenceSeconds;
    return run.is_locked != true && (have_all_ended(run) || is_silent);
}

bool is_ending(const RunProgress& run) {
    return run.is_locked == true && (count_stopped(run) > 0 || have_all_ended(run));
}

bool has_died(const RunProgress& run) {
    const std::int64_t needed = run.was_on_this_node ? 0 : kUnlockedSilenceSeconds;
    return run.is_locked == false && silence_seconds(run).value_or(-1) >= needed;
}

bool shows_resume_step(const RunProgress& run) {
    return exit_code_of(run) == ExitCode::watchdog && (is_over(run) || has_died(run));
}

std::optional<std::int64_t> silence_seconds(const RunProgress& run) {
    if (have_all_ended(run) && run.is_locked != true) return std::nullopt;
    std::int64_t last = run.started_unix_seconds;
    for (const GroupProgress& group : run.groups)
        if (group.progress) last = std::max(last, group.progress->written_unix_seconds);
    if (last <= 0 || last > run.now_unix_seconds) return std::nullopt;
    return run.now_unix_seconds - last;
}

std::string progress_table(RunProgress run) {
    // If no group has failed, SIGTERM is a request to stop, such as Ctrl-C in mpirun.
    const bool is_stopped = exit_code_of(run) == ExitCode::stopped;
    const bool is_dead = is_over(run) || has_died(run);
    for (GroupProgress& group : run.groups) {
        if (is_stopped && group.progress && group.progress->state == ProgressState::terminated)
            group.progress->state = ProgressState::stopped;
        if (is_dead && group.progress && is_at_work(*group.progress))
            group.progress->state = ProgressState::training;  // shown as "interrupted"
    }
    std::string text =
        progress_line("group", "state", "epoch", "step", "loss", "images/s", "left", "heartbeat");
    std::string leaders, reasons;
    for (const GroupProgress& group : run.groups) {
        text += line_of(group, run);
        if (group.progress)
            leaders += fmt::format("{} group {} on {}", leaders.empty() ? "leaders:" : ",",
                                   group.group, printable(group.progress->host));
        const std::string& reason = group.progress ? group.progress->reason : group.read_error;
        if (reason.empty()) continue;
        const std::string line =
            fmt::format("reason: group {}: {}", group.group, printable(reason));
        reasons += wrap(line, 8) + "\n";
    }
    if (!leaders.empty()) text += wrap(leaders, 9) + "\n";
    text += reasons;
    if (const auto silence = silence_seconds(run); silence && *silence >= kSilenceSeconds) {
        text += wrap(fmt::format("no heartbeat for {}: {}",
                                 format_seconds(static_cast<double>(*silence)),
                                 meaning_of_silence(run.is_locked)),
                     4) +
                "\n";
    }
    if ((is_dead || run.is_locked == false) && !run.next_command.empty()) {
        const std::string line =
            fmt::format("{}{}: {}", have_all_finished(run) ? "score" : "resume",
                        is_dead ? "" : ", unless another node runs it, whose lock may be hidden",
                        run.next_command);
        text += wrap_command(line, 4) + "\n";
    }
    if (run.resume_step && shows_resume_step(run)) {
        const std::string line = fmt::format(
            "`resume` would start{} from step {}: {}",
            run.resume_group ? fmt::format(" group {}", *run.resume_group) : "", *run.resume_step,
            *run.resume_step > 0 ? "the newest complete checkpoint" : "no checkpoint is complete");
        text += wrap(line, 4) + "\n";
    }
    if (have_all_ended(run) && run.is_locked == true) {
        text += "a process still works on this run; ask again\n";
    }
    const bool trains = is_running(run) && !have_all_ended(run);
    text += fmt::format("STATUS {}  groups={}", trains ? "RUNNING" : word_of(exit_code_of(run)),
                        run.groups.size());
    for (const auto& row : words_of(ProgressState{})) {
        if (const auto groups = count(run, row.value)) {
            text += fmt::format(" {}={}", shown_state(row.value, is_dead), groups);
        }
    }
    return text + fmt::format(" directory={}\n", printable(run.directory));
}

}  // namespace hpcai::report
