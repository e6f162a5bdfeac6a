// SPDX-License-Identifier: Apache-2.0
#include "job_controller.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <iostream>
#include <span>
#include <thread>

#include <nlohmann/json.hpp>

#include <hpcai/base/text.hpp>
#include <hpcai/group/peer_groups.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/results/run_output.hpp>
#include <hpcai/verification/verdict.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::benchmark {
namespace {

/// Returns the world ranks of the leaders that took part in the agreement, except the writer's.
std::vector<int> agreed_leaders(const comm::Membership& decision, std::span<const int> leaders) {
    std::vector<int> ranks;
    for (const comm::GroupStatus& status : decision.statuses()) {
        const bool has_agreed =
            status.state == comm::GroupState::completed || status.state == comm::GroupState::failed;
        if (!has_agreed || status.group == decision.writer()) continue;
        ranks.push_back(leaders[status.group]);
    }
    return ranks;
}

/// Returns whether the watchdogs of all absent groups have reported a hang. Then waiting for these
/// groups is useless.
bool are_all_absent_hung(const comm::Membership& decision, const std::filesystem::path& output) {
    return std::ranges::all_of(decision.statuses(), [&](const comm::GroupStatus& status) {
        return status.state != comm::GroupState::absent ||
               !results::describe_hang(output, status.group).empty();
    });
}

/// Returns whether every group completed or stopped. Otherwise a failed group may be the reason why
/// the launcher sent SIGTERM.
bool have_all_completed_or_stopped(const comm::Membership& decision) {
    return std::ranges::all_of(decision.statuses(), [](const comm::GroupStatus& status) {
        return status.state == comm::GroupState::completed || status.has_stopped();
    });
}

bool has_group_stopped_by_sigterm(const context::RunContext& context) {
    for (int group = 0; group < context.controller.layout().groups; ++group) {
        const GroupProgress found = results::read_progress(context.output, group);
        if (found.progress && found.progress->state == ProgressState::terminated) return true;
    }
    return false;
}

constexpr const char* kNoStatus = "no final status was received";

/// Marks an absent group as failed, because `hpcai500 status` would otherwise always show it as
/// training. If the group still runs, it replaces this status when it ends.
void mark_absent(const context::RunContext& context, int group) {
    GroupProgress found = results::read_progress(context.output, group);
    ProgressRecord progress = found.progress.value_or(ProgressRecord{});
    const bool has_ended = found.progress && progress.state != ProgressState::training &&
                           progress.state != ProgressState::evaluating;
    if (has_ended) return;
    progress.state = ProgressState::failed;
    progress.reason = fmt::format("{}; its last report was at step {} of {}", kNoStatus,
                                  progress.step, progress.steps);
    results::write_progress(context.output, group, std::move(progress));
}

Error exclusion_error(const group::GroupOutcome& outcome) {
    if (outcome.status.has_stopped()) {
        const ExitCode code = outcome.end == ProgressState::unsaved      ? ExitCode::internal
                              : outcome.end == ProgressState::terminated ? ExitCode::watchdog
                                                                         : ExitCode::stopped;
        return {code,
                fmt::format("group {} {}; the other leaders do not answer or continued without it",
                            outcome.status.group, outcome.status.reason_text())};
    }
    return {ExitCode::partial,
            fmt::format("group {} is excluded: the other leaders do not answer or continued "
                        "without it; its predictions are stored",
                        outcome.status.group)};
}

comm::NextAction next_action(const results::RunEnd& end) {
    return end.has_next_run ? comm::NextAction::another_run : comm::NextAction::exit;
}

/// Reports an error in the log file and on standard error. Returns the error's code.
ExitCode report_error(const std::exception& exception, Logger& log) {
    const Error error = to_error(exception);
    log.error("{}", error.what());
    std::cerr << "hpcai500: " << error.what() << "\n";
    return error.code();
}

}  // namespace

results::RunEnd JobController::finish(const group::GroupOutcome& outcome, Logger& log,
                                      std::ostream& out) {
    const int group = context_.place.group;
    if (context_.place.group_rank != 0) {
        if (outcome.is_acting_leader) world_.announce_loss(outcome.status, leaders());
        if (outcome.has_lost_leader && context_.launch.exit_ends_others) {
            wait_until_others_exit(outcome.is_acting_leader);
            return {ExitCode::watchdog, false};
        }
        const double seconds = outcome.has_lost_leader ? 0 : world_.grace_seconds();
        const auto next = world_.wait_for_exit_permit(context_.controller.leader(group), seconds);
        return {ExitCode::ok, next == comm::NextAction::another_run};
    }
    results::RunEnd end{ExitCode::internal, false};
    try {
        end = run_as_leader(outcome, log, out);
    } catch (const std::exception& error) {
        end = {report_error(error, log), false};
    }
    std::vector<int> others;
    for (int rank = 1; rank < context_.controller.layout().degree; ++rank) {
        others.push_back(context_.controller.world_rank_of(group, rank));
    }
    world_.release(others, next_action(end));
    return end;
}

/// Waits for the other groups, because the exit of this process would end all ranks. Then this
/// process can exit and so end the job, even if its group's leader hangs.
void JobController::wait_until_others_exit(bool is_acting_leader) {
    constexpr std::chrono::seconds kPollInterval{1};
    constexpr std::chrono::seconds kTimeToLog{60};  // the acting leader logs first
    group::PeerGroups others(context_);
    while (!others.have_ended()) std::this_thread::sleep_for(kPollInterval);
    if (!is_acting_leader) std::this_thread::sleep_for(kTimeToLog);
    world_.mark_others_gone();
}

std::vector<int> JobController::leaders() const {
    std::vector<int> leaders;
    for (int group = 0; group < context_.controller.layout().groups; ++group) {
        leaders.push_back(context_.controller.leader(group));
    }
    return leaders;
}

results::RunEnd JobController::run_as_leader(const group::GroupOutcome& outcome, Logger& log,
                                             std::ostream& out) {
    const int group = context_.place.group;
    const std::vector<int> leaders = this->leaders();
    comm::MembershipAgreementDeadlines deadlines;
    deadlines.status_seconds =
        group::peer_wait_seconds(context_.config.run, since_training_.seconds());
    // Other groups may need as long as this group to stop: their checkpoints have the same size.
    deadlines.stopped_seconds = std::max(deadlines.stopped_seconds, outcome.stop_seconds);
    deadlines.longest_seconds = world_.grace_seconds();
    const comm::AgreedMembers agreed = world_.agree_on_members(outcome.status, leaders, deadlines);
    if (!agreed.decision.agreed) return {report_error(exclusion_error(outcome), log), false};
    if (agreed.decision.has_absent_group() &&
        are_all_absent_hung(agreed.decision, context_.output)) {
        world_.mark_others_gone();
    }
    results::RunEnd end;
    try {
        end = agreed.decision.has_stopped_group() ? report_stop(agreed, out)
                                                  : vote_and_write(agreed, outcome, out);
    } catch (const std::exception& error) {
        end = {report_error(error, log), false};
        if (group == agreed.decision.writer() && context_.launch.repetitions > 1) {
            const int repetition = context_.launch.repetition;
            results::record_stop(context_.folder(),
                                 fmt::format("repetition {}: {}", repetition, error.what()),
                                 context_.config, out);
        }
        // The other leaders may wait for this leader in the vote.
        if (agreed.leaders != nullptr) {
            agreed.leaders->announce_failure(Error(end.code, error.what()));
        }
    }
    const int writer = agreed.decision.writer();
    if (group == writer) {
        world_.release(agreed_leaders(agreed.decision, leaders), next_action(end));
    } else {
        // Waits until the result is complete, because the exit of this rank could end the writer.
        const auto next = world_.wait_for_exit_permit(leaders[writer], world_.grace_seconds());
        end.has_next_run = next == comm::NextAction::another_run;
    }
    return end;
}

/// Prints where each group has stopped, from its files.
results::RunEnd JobController::report_stop(const comm::AgreedMembers& agreed,
                                           std::ostream& out) const {
    if (agreed.decision.writer() != context_.place.group) return {};
    std::ostream& text = results::text_stream(context_.config, out);
    std::optional<std::int64_t> step;
    bool is_saved = true;
    for (const comm::GroupStatus& status : agreed.decision.statuses()) {
        if (status.state == comm::GroupState::completed) {
            text << fmt::format("group {}: finished\n", status.group);
            continue;
        }
        if (status.state == comm::GroupState::absent) mark_absent(context_, status.group);
        const GroupRecord group = results::read_failed_group(context_.output, status.group,
                                                             context_.controller.layout().degree)
                                      .record;
        text << fmt::format("group {}: {}\n", status.group,
                            group.failure.empty() ? kNoStatus : printable(group.failure));
        // A stopped group resumes from a checkpoint of the step in its record, or of an earlier
        // step. This launch found checkpoints of later steps, from an earlier launch, damaged.
        const bool has_stop_record = status.has_stopped() && !group.failure.empty();
        const std::int64_t resumed_step =
            has_stop_record ? results::last_checkpoint(context_.output, status.group, group.ranks,
                                                       group.iterations)
                            : results::last_checkpoint(context_.output, status.group, group.ranks);
        const bool has_checkpoint = has_stop_record && resumed_step == group.iterations;
        is_saved = is_saved && (has_checkpoint || !status.has_stopped());
        step = std::min(step.value_or(resumed_step), resumed_step);
    }
    const std::string resume = results::resume_command(context_.controller.layout().ranks,
                                                       run_.launch.environment, context_.folder());
    if (const std::string why = verification::describe_resumed(context_.config); !why.empty())
        text << wrap("after a resume, the result is " + why, 4) << '\n';
    text << fmt::format("STOPPED step={} resume: {}\n", step.value_or(0), resume) << std::flush;
    if (&text != &out)
        out << results::event_line("stopped", context_.output, context_.launch.repetition_or_zero(),
                                   {{"step", step.value_or(0)}, {"resume", resume}})
            << std::flush;
    if (!is_saved) return {ExitCode::internal, false};
    const bool is_failure =
        has_group_stopped_by_sigterm(context_) && !have_all_completed_or_stopped(agreed.decision);
    return {is_failure ? ExitCode::watchdog : ExitCode::stopped, false};
}

results::RunEnd JobController::vote_and_write(const comm::AgreedMembers& agreed,
                                              const group::GroupOutcome& outcome,
                                              std::ostream& out) {
    results::EnsembleResult ensemble;
    if (agreed.leaders != nullptr) {
        const auto evaluator = workloads::make_evaluator(context_.config, run_.samples);
        ensemble = combine_members(*evaluator, outcome, *agreed.leaders);
    }
    const bool is_writer = agreed.decision.writer() == context_.place.group;
    return is_writer ? write_result(agreed, ensemble, out) : results::RunEnd{};
}

results::RunEnd JobController::write_result(const comm::AgreedMembers& agreed,
                                            const results::EnsembleResult& ensemble,
                                            std::ostream& out) {
    const std::vector<comm::GroupStatus> groups = agreed.decision.statuses();
    const results::RunOutcome outcome{groups, {startup_seconds_, ""}, {since_start_.seconds(), ""}};
    const RunRecord record =
        benchmark::write_result(run_, ensemble, outcome, Origin::this_run, out);
    if (context_.launch.repetitions == 1) return {record.verdict.exit_code, false};
    return results::close_repetition(
        context_, !agreed.decision.has_absent_group() && !agreed.decision.has_lost_rank(), out);
}

}  // namespace hpcai::benchmark
