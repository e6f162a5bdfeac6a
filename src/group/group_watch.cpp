// SPDX-License-Identifier: Apache-2.0
#include "group_watch.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/deadline_guard.hpp>
#include <hpcai/records/json.hpp>
#include <hpcai/report/record_text.hpp>
#include <hpcai/results/group_files.hpp>
#include <hpcai/results/result_layout.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::group {
namespace {

constexpr double kFlightIntervalSeconds = 1;
constexpr double kSecondsForRecords = 10;    // to wait for the records of ranks that notice at once
constexpr double kSecondsToOtherNodes = 30;  // until a shared file system shows a new file
constexpr double kMaxForRecords = 300;
constexpr double kSecondsToReport = 30;  // after the records are read
constexpr double kMaxToReport = 3600;
constexpr std::chrono::milliseconds kBetweenReadings{250};
constexpr std::chrono::milliseconds kMaxBetweenReadings{5000};
constexpr std::size_t kNamed = 4;

std::filesystem::path flights_of(const context::RunContext& context) {
    return results::flight_directory(context.output, context.place.group);
}

}  // namespace

GroupWatch::GroupWatch(const context::RunContext& context, comm::Communicator& group,
                       training::FlightRecorder& recorder)
    : context_(context), group_(group), recorder_(recorder), watchdog_(settings()) {
    std::error_code error;
    std::filesystem::remove(file_of(group.rank()), error);
    processes_ = comm::all_gather(group, this_process());
    for (int rank = 0; rank < group.size(); ++rank) {
        const int world_rank = context.controller.world_rank_of(context.place.group, rank);
        const bool is_here = context.controller.place(world_rank).node == context.place.node;
        is_visible_.push_back(is_here && rank != group.rank() && is_running(processes_[rank]));
    }
    next_here_ = find_next_here();
    watch(group);
}

GroupWatch::~GroupWatch() {
    for (comm::Communicator* const ranks : watched_) ranks->set_wait_callback({});
}

training::WatchdogSettings GroupWatch::settings() {
    const config::RunConfig& run = context_.config.run;
    training::WatchdogSettings settings{
        training::StepTimeout(run.first_step_timeout_seconds, run.step_timeout_seconds)};
    settings.rank_name =
        fmt::format("rank {} of group {} (world rank {} on {})", group_.rank(),
                    context_.place.group, context_.place.world_rank, context_.host());
    settings.on_expiry = [this](const std::string& reason) { report_expiry(reason); };
    if (context_.program.exit_ends_others && context_.controller.layout().ranks > 1) {
        settings.may_end = [this] { return may_end(); };
    }
    return settings;
}

/// Returns whether a process whose exit ends all ranks may exit: the ranks that answer had time to
/// report the failure, and the other groups have ended.
bool GroupWatch::may_end() {
    const bool have_ended = others_->have_ended();
    return have_ended && since_expiry_.seconds() > seconds_for_records() + kSecondsToReport;
}

void GroupWatch::watch(comm::Communicator& ranks) {
    watched_.push_back(&ranks);
    ranks.set_wait_callback([this] { poll(); });
}

void GroupWatch::begin(std::int64_t steps_done) {
    recorder_.step_done(steps_done);
    watchdog_.begin();
}

/// Counts a step only when its results are read: the state of the device is unknown before.
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
    if (since_poll_.seconds() < kFlightIntervalSeconds) return;
    since_poll_.restart();
    require(!next_here_ || !has_died(*next_here_), ExitCode::watchdog, "a rank has died");
}

/// Returns the process that this rank polls: only one, because polling all would load /proc on
/// large nodes.
std::optional<int> GroupWatch::find_next_here() const {
    for (int step = 1; step < group_.size(); ++step) {
        const int rank = (group_.rank() + step) % group_.size();
        if (is_visible_[rank]) return rank;
    }
    return std::nullopt;
}

bool GroupWatch::has_died(int group_rank) const {
    return is_visible_[group_rank] && has_ended(processes_[group_rank]);
}

bool GroupWatch::is_halted(int group_rank) const {
    return is_visible_[group_rank] && is_stopped(processes_[group_rank]);
}

std::filesystem::path GroupWatch::file_of(int group_rank) const {
    return flights_of(context_) / fmt::format("rank-{}.json", group_rank);
}

/// Runs in the thread of the watchdog while the training thread hangs or has not yet noticed.
void GroupWatch::report_expiry(const std::string& reason) {
    since_expiry_.restart();
    others_.emplace(context_);
    const bool do_others_report = !context_.program.exit_ends_others && group_.size() > 1;
    if (do_others_report || group_.rank() != 0) return write_record(reason, false);
    std::cerr << fmt::format("hpcai500: group {} on {}: {}\n", context_.place.group,
                             context_.host(), reason);
    write_record(reason, false);
}

/// Ignores errors: the group has already failed.
void GroupWatch::write_record(const std::string& reason, bool answers) {
    // The other thread may write for a long time, or permanently on a file system that hangs. After
    // the record of the training thread, one of the watchdog's thread adds nothing.
    const std::unique_lock lock(writing_, std::chrono::seconds(answers ? 60 : 5));
    if (!lock || (is_written_ && !answers)) return;
    FlightRecord record;
    record.group = context_.place.group;
    record.group_rank = group_.rank();
    record.world_rank = context_.place.world_rank;
    record.host = context_.hostnames[record.world_rank];
    record.process = processes_[record.group_rank].number;
    record.reason = reason;
    record.answers = answers;
    record.silent_seconds = watchdog_.silent_seconds();
    recorder_.fill_record(record);
    try {
        std::error_code error;
        std::filesystem::create_directories(flights_of(context_), error);
        storage::write_file_durably(file_of(record.group_rank), records::to_json(record));
        is_written_ = answers;
    } catch (const std::exception&) {
        return;
    }
}

/// Returns how long to wait for the records. A rank notices a failure only after its current step.
double GroupWatch::seconds_for_records() const {
    const bool are_all_here = context_.controller.nodes_of(context_.place.group).size() == 1;
    const double least = kSecondsForRecords + (are_all_here ? 0 : kSecondsToOtherNodes);
    return std::clamp(2 * watchdog_.longest_seconds(), least, kMaxForRecords);
}

/// Limits the load on a shared file system: all ranks of a group, up to 5,000, together read the
/// record of a rank at most a thousand times a second.
std::chrono::milliseconds GroupWatch::poll_interval() const {
    return std::clamp(std::chrono::milliseconds(group_.size()), kBetweenReadings,
                      kMaxBetweenReadings);
}

/// Waits for the record of a rank, unless the rank is gone.
GroupWatch::RankState GroupWatch::await(int group_rank, const Stopwatch& watch) const {
    RankState state;
    while (true) {
        state.record = results::read_flight(file_of(group_rank));
        state.is_gone = has_died(group_rank) || is_halted(group_rank);
        state.answers = group_rank == group_.rank() ||
                        (state.record && state.record->answers && !state.is_gone);
        if (state.answers || state.is_gone || watch.seconds() >= seconds_for_records()) {
            return state;
        }
        std::this_thread::sleep_for(poll_interval());
    }
}

std::string GroupWatch::describe(int group_rank, const RankState& state) const {
    const int world_rank = context_.controller.world_rank_of(context_.place.group, group_rank);
    const char* const what = has_died(group_rank) ? "has died"
                             : state.record       ? "hangs"
                                                  : "does not answer";
    return fmt::format("rank {} (world rank {} on {}, process {}) {}", group_rank, world_rank,
                       context_.hostnames[world_rank], processes_[group_rank].number, what);
}

/// Kills stopped processes, which would remain after all others have exited. A process that hangs
/// exits by its watchdog.
void GroupWatch::kill_stopped() const {
    if (context_.program.exit_ends_others) return;
    for (int rank = 0; rank < group_.size(); ++rank) {
        if (!is_halted(rank)) continue;
        kill(static_cast<pid_t>(processes_[rank].number), SIGKILL);
    }
}

std::string GroupWatch::describe_ranks(const std::string& reason, const Stopwatch& watch) const {
    std::vector<FlightRecord> records;
    std::vector<std::string> silent;
    for (int rank = 0; rank < group_.size(); ++rank) {
        RankState state = await(rank, watch);
        if (!state.answers && (is_written_ || state.is_gone)) {
            silent.push_back(describe(rank, state));
        }
        if (state.record) records.push_back(std::move(*state.record));
    }
    std::string text = reason;
    if (!records.empty()) {
        const auto farthest = std::ranges::max_element(records, {}, &FlightRecord::steps_done);
        text += fmt::format(", after {} steps", farthest->steps_done);
    }
    if (silent.size() > kNamed) {
        const std::size_t more = silent.size() - kNamed;
        silent.resize(kNamed);
        silent.push_back(fmt::format("{} more", more));
    }
    if (silent.empty() && !records.empty()) silent.push_back(report::describe_laggards(records));
    if (!silent.empty()) text += fmt::format(": {}", fmt::join(silent, "; "));
    return text + (is_written_ ? fmt::format("; the flight records are in groups/{}/flight",
                                             context_.place.group)
                               : "; flight records cannot be written");
}

WatchReport GroupWatch::report(const std::string& reason) {
    watchdog_.end();
    std::optional<comm::DeadlineGuard> guard;
    if (!context_.program.exit_ends_others) {  // the file system may hang
        guard.emplace(kMaxToReport, ExitCode::watchdog, "the report of a group's end");
    }
    write_record(reason, true);
    const Stopwatch watch;
    int reporter = 0;
    while (reporter < group_.rank() && !await(reporter, watch).answers) ++reporter;
    WatchReport found{reason, reporter > 0, reporter == group_.rank()};
    if (found.logs) found.failure = describe_ranks(reason, watch);
    kill_stopped();
    return found;
}

}  // namespace hpcai::group
