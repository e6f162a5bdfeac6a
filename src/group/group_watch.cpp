// SPDX-License-Identifier: Apache-2.0
#include "group_watch.hpp"

#include <algorithm>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/deadline_guard.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::group {
namespace {

constexpr double kPollSeconds = 1;
constexpr double kRecordWaitSeconds = 10;  // for the records of ranks that detect the failure
constexpr double kFileDelaySeconds = 30;   // until a shared file system shows a new file
constexpr double kMaxRecordWaitSeconds = 300;
constexpr double kReportSeconds = 30;       // after record_wait_seconds(), to report the failure
constexpr double kMaxReportSeconds = 3600;  // limit of report(), if the file system hangs
constexpr std::chrono::milliseconds kMinPollInterval{250};
constexpr std::chrono::milliseconds kMaxPollInterval{5000};
constexpr std::chrono::seconds kTrainingThreadWait{60}, kWatchdogWait{5};  // for write_mutex_
constexpr std::size_t kMaxNamedSilentRanks = 4;

std::filesystem::path flight_directory_of(const context::RunContext& context) {
    return results::flight_directory(context.output, context.place.group);
}

}  // namespace

GroupWatch::GroupWatch(const context::RunContext& context, comm::Communicator& group,
                       training::FlightRecorder& recorder)
    : context_(context), group_(group), recorder_(recorder), watchdog_(settings()) {
    std::error_code error;
    std::filesystem::remove(flight_file(group.rank()), error);
    processes_ = comm::all_gather(group, this_process());
    for (int rank = 0; rank < group.size(); ++rank) {
        const int world_rank = context.controller.world_rank_of(context.place.group, rank);
        const bool is_same_node = context.controller.place(world_rank).node == context.place.node;
        const bool is_other = is_same_node && rank != group.rank();
        const ProcessState state = is_other ? state_of(processes_[rank]) : ProcessState::unknown;
        is_visible_.push_back(state == ProcessState::running || state == ProcessState::stopped);
    }
    // If every rank polled all others, nodes with many ranks would be busy reading /proc.
    for (int distance = 1; distance < group.size() && !polled_rank_; ++distance) {
        const int rank = (group.rank() + distance) % group.size();
        if (is_visible_[rank]) polled_rank_ = rank;
    }
    watch(group);
}

GroupWatch::~GroupWatch() {
    for (comm::Communicator* const ranks : watched_ranks_) ranks->set_wait_callback({});
}

training::WatchdogSettings GroupWatch::settings() {
    const config::RunConfig& run = context_.config.run;
    training::WatchdogSettings settings{
        training::StepTimeout(run.first_step_timeout_seconds, run.step_timeout_seconds)};
    settings.rank_name =
        fmt::format("rank {} of group {} (world rank {} on {})", group_.rank(),
                    context_.place.group, context_.place.world_rank, context_.host());
    settings.on_expiry = [this](const std::string& reason) { on_timeout(reason); };
    if (context_.launch.exit_ends_others && context_.controller.layout().ranks > 1) {
        // The exit of this process ends all ranks. The process may exit when the other groups have
        // ended and responsive ranks had time to report the failure.
        settings.may_end = [this] {
            const bool have_ended = peer_groups_->have_ended();
            return have_ended && since_expiry_.seconds() > record_wait_seconds() + kReportSeconds;
        };
    }
    return settings;
}

void GroupWatch::watch(comm::Communicator& ranks) {
    watched_ranks_.push_back(&ranks);
    ranks.set_wait_callback([this] { poll(); });
}

void GroupWatch::begin(std::int64_t steps_done) {
    recorder_.step_done(steps_done);
    watchdog_.begin();
}

/// The watchdog counts a step only after its results are read. Until then the device may hang.
void GroupWatch::step_done(const training::StepReport& step) {
    recorder_.step_done(step.step);
    if (step.is_read) {
        watchdog_.step_done();
    } else {
        watchdog_.check();
    }
}

void GroupWatch::pause(const char* name, double seconds) {
    recorder_.enter(name);
    watchdog_.allow(seconds);
}

void GroupWatch::poll() {
    watchdog_.check();
    if (since_poll_.seconds() < kPollSeconds) return;
    since_poll_.restart();
    require(!polled_rank_ || process_state(*polled_rank_) != ProcessState::ended,
            ExitCode::watchdog, "a rank has died");
}

ProcessState GroupWatch::process_state(int group_rank) const {
    return is_visible_[group_rank] ? state_of(processes_[group_rank]) : ProcessState::unknown;
}

std::filesystem::path GroupWatch::flight_file(int group_rank) const {
    return flight_directory_of(context_) / fmt::format("rank-{}.json", group_rank);
}

/// Runs in the watchdog's thread, because the training thread may hang.
void GroupWatch::on_timeout(const std::string& reason) {
    since_expiry_.restart();
    peer_groups_.emplace(context_);
    const bool do_others_report = !context_.launch.exit_ends_others && group_.size() > 1;
    if (!do_others_report && group_.rank() == 0) {
        std::cerr << fmt::format("hpcai500: group {} on {}: {}\n", context_.place.group,
                                 context_.host(), reason);
    }
    write_record(reason, false);
}

/// Ignores errors: the group has already failed.
void GroupWatch::write_record(const std::string& reason, bool by_training_thread) {
    // The thread that holds the lock may write for long, or forever if the file system hangs. The
    // watchdog's thread must not replace a record of the training thread.
    const std::unique_lock lock(write_mutex_,
                                by_training_thread ? kTrainingThreadWait : kWatchdogWait);
    if (!lock || (is_written_by_training_thread_ && !by_training_thread)) return;
    FlightRecord record;
    record.group = context_.place.group;
    record.group_rank = group_.rank();
    record.world_rank = context_.place.world_rank;
    record.host = context_.host(record.world_rank);
    record.process = processes_[record.group_rank].pid;
    record.reason = reason;
    record.answers = by_training_thread;
    record.silent_seconds = watchdog_.silent_seconds();
    recorder_.fill_record(record);
    try {
        std::error_code error;
        std::filesystem::create_directories(flight_directory_of(context_), error);
        storage::write_file_durably(flight_file(record.group_rank), records::to_json(record));
        is_written_by_training_thread_ = by_training_thread;
    } catch (const std::exception&) {
        return;
    }
}

/// Returns how long to wait for flight records. A rank detects a failure only after its current
/// step.
double GroupWatch::record_wait_seconds() const {
    const bool is_single_node = context_.controller.shares_of(context_.place.group).size() == 1;
    const double minimum = kRecordWaitSeconds + (is_single_node ? 0 : kFileDelaySeconds);
    return std::clamp(2 * watchdog_.longest_seconds(), minimum, kMaxRecordWaitSeconds);
}

/// Waits until the flight record of a rank shows that the rank responds, or the rank has died or
/// was stopped. Ends at the latest when `waited` reaches record_wait_seconds().
GroupWatch::RankState GroupWatch::await(int group_rank, const Stopwatch& waited) const {
    RankState state;
    // Limits the load on a shared file system: a group of up to 5,000 ranks reads at most 1,000
    // flight records a second.
    const auto poll_interval =
        std::clamp(std::chrono::milliseconds(group_.size()), kMinPollInterval, kMaxPollInterval);
    while (true) {
        state.record = results::read_flight(flight_file(group_rank));
        const ProcessState process = process_state(group_rank);
        state.is_gone = process == ProcessState::ended || process == ProcessState::stopped;
        state.is_responsive = group_rank == group_.rank() ||
                              (state.record && state.record->answers && !state.is_gone);
        const bool is_late = waited.seconds() >= record_wait_seconds();
        if (state.is_responsive || state.is_gone || is_late) return state;
        std::this_thread::sleep_for(poll_interval);
    }
}

std::string GroupWatch::describe(int group_rank, const RankState& state) const {
    const int world_rank = context_.controller.world_rank_of(context_.place.group, group_rank);
    const char* const what = process_state(group_rank) == ProcessState::ended ? "has died"
                             : state.record                                   ? "hangs"
                                                                              : "does not answer";
    return fmt::format("rank {} (world rank {} on {}, process {}) {}", group_rank, world_rank,
                       context_.host(world_rank), processes_[group_rank].pid, what);
}

std::string GroupWatch::describe_ranks(const std::string& reason, const Stopwatch& waited) const {
    std::vector<FlightRecord> records;
    std::vector<std::string> silent;
    for (int rank = 0; rank < group_.size(); ++rank) {
        RankState state = await(rank, waited);
        // If records cannot be written, a rank without one may be responsive.
        if (!state.is_responsive && (is_written_by_training_thread_ || state.is_gone)) {
            silent.push_back(describe(rank, state));
        }
        if (state.record) records.push_back(std::move(*state.record));
    }
    std::string text = reason;
    if (!records.empty()) {
        const auto farthest = std::ranges::max_element(records, {}, &FlightRecord::steps_done);
        text += fmt::format(", after {}", counted(farthest->steps_done, "step"));
    }
    if (silent.size() > kMaxNamedSilentRanks) {
        const std::size_t more = silent.size() - kMaxNamedSilentRanks;
        silent.resize(kMaxNamedSilentRanks);
        silent.push_back(fmt::format("{} more", more));
    }
    if (silent.empty() && !records.empty()) silent.push_back(report::describe_laggards(records));
    if (!silent.empty()) text += fmt::format(": {}", fmt::join(silent, "; "));
    return text +
           (is_written_by_training_thread_
                ? fmt::format("; the flight records are in groups/{}/flight", context_.place.group)
                : "; flight records cannot be written");
}

WatchReport GroupWatch::report(const std::string& reason) {
    watchdog_.end();
    std::optional<comm::DeadlineGuard> guard;
    if (!context_.launch.exit_ends_others) {
        guard.emplace(kMaxReportSeconds, ExitCode::watchdog, "the report of a group's failure");
    }
    write_record(reason, true);
    const Stopwatch waited;
    int reporter = 0;
    while (reporter < group_.rank() && !await(reporter, waited).is_responsive) ++reporter;
    WatchReport found{reason, reporter > 0, reporter == group_.rank()};
    if (found.is_reporter) found.failure = describe_ranks(reason, waited);
    // Stopped processes would outlive the run. A hanging process is ended by its own watchdog.
    for (int rank = 0; rank < group_.size() && !context_.launch.exit_ends_others; ++rank) {
        if (process_state(rank) != ProcessState::stopped) continue;
        kill(static_cast<pid_t>(processes_[rank].pid), SIGKILL);
    }
    return found;
}

}  // namespace hpcai::group
