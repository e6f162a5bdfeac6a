// SPDX-License-Identifier: Apache-2.0
#include "group_watch.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <hpcai/base/error.hpp>
#include <hpcai/report/flight.hpp>
#include <hpcai/storage/file.hpp>

#include "group_job.hpp"

namespace hpcai::benchmark {
namespace {

constexpr double kSecondsBetweenLooks = 1;
constexpr double kSecondsForRecords = 5;  // of ranks that notice at about the same time
constexpr std::size_t kNamed = 4;
constexpr std::size_t kRecordLimitBytes = std::size_t{1} << 20;

std::filesystem::path flight_directory(const Start& start) {
    return group_directory(start.output, start.place.group) / "flight";
}

training::WatchdogSettings settings_of(const Start& start,
                                       std::function<void(const std::string&)> on_expiry) {
    const config::RunConfig& run = start.config.run;
    training::WatchdogSettings settings{
        training::StepTimeout(run.first_step_timeout_seconds, run.step_timeout_seconds)};
    settings.ends_process = !start.exit_ends_others;
    settings.on_expiry = std::move(on_expiry);
    return settings;
}

}  // namespace

GroupWatch::GroupWatch(const Start& start, comm::Communicator& group,
                       training::FlightRecorder& recorder)
    : start_(start),
      group_(group),
      recorder_(recorder),
      processes_(static_cast<std::size_t>(group.size())),
      watchdog_(settings_of(start, [this](const std::string& reason) { write_record(reason); })) {
    std::error_code error;
    std::filesystem::remove(file_of(group.rank()), error);
    const ProcessId mine = this_process();
    group.all_gather(std::as_bytes(std::span(&mine, 1)),
                     std::as_writable_bytes(std::span(processes_)));
    for (int rank = 0; rank < group.size(); ++rank) {
        const int world_rank = start.controller.world_rank_of(start.place.group, rank);
        const bool is_here = start.controller.place(world_rank).node == start.place.node;
        can_be_looked_at_.push_back(is_here && rank != group.rank() &&
                                    is_running(processes_[static_cast<std::size_t>(rank)]));
    }
    next_here_ = find_next_here();
    watch(group);
}

void GroupWatch::watch(comm::Communicator& ranks) {
    ranks.while_waiting([this] { look(); });
}

void GroupWatch::begin(std::int64_t steps_done) {
    recorder_.step_done(steps_done);
    watchdog_.begin();
}

/// Until the results of a step have been read the device may be anywhere.
void GroupWatch::step_done(const training::StepReport& step) {
    recorder_.step_done(step.step);
    if (std::isnan(step.loss)) {
        watchdog_.check();
    } else {
        watchdog_.step_done();
    }
}

void GroupWatch::pause(const char* name, double seconds) {
    recorder_.enter(name);
    watchdog_.allow(seconds);
}

void GroupWatch::go_on() {
    watchdog_.go_on();
}

void GroupWatch::end() {
    watchdog_.end();
}

void GroupWatch::look() {
    watchdog_.check();
    if (since_look_.seconds() < kSecondsBetweenLooks) return;
    since_look_.restart();
    require(!next_here_ || !has_died(*next_here_), ExitCode::watchdog, "a rank has died");
}

/// Each looks at one of the others, or on large nodes /proc would have much to do.
std::optional<int> GroupWatch::find_next_here() const {
    for (int step = 1; step < group_.size(); ++step) {
        const int rank = (group_.rank() + step) % group_.size();
        if (can_be_looked_at_[static_cast<std::size_t>(rank)]) return rank;
    }
    return std::nullopt;
}

bool GroupWatch::has_died(int group_rank) const {
    const auto index = static_cast<std::size_t>(group_rank);
    return can_be_looked_at_[index] && !is_running(processes_[index]);
}

std::filesystem::path GroupWatch::file_of(int group_rank) const {
    return flight_directory(start_) / fmt::format("rank-{}.json", group_rank);
}

/// A group does not fail for that a second time: what cannot be written is not.
void GroupWatch::write_record(const std::string& reason) {
    const std::lock_guard lock(writing_);
    if (std::exchange(is_written_, true)) return;
    FlightRecord record;
    record.group = start_.place.group;
    record.group_rank = group_.rank();
    record.world_rank = start_.place.world_rank;
    record.host = start_.hostnames[static_cast<std::size_t>(record.world_rank)];
    record.process = processes_[static_cast<std::size_t>(record.group_rank)].number;
    record.reason = reason;
    record.silent_seconds = watchdog_.silent_seconds();
    recorder_.put_into(record);
    try {
        std::error_code error;
        std::filesystem::create_directories(flight_directory(start_), error);
        storage::write_file_durably(file_of(record.group_rank), report::to_json(record));
    } catch (const std::exception&) {
        return;
    }
}

/// Those without one.
std::vector<int> GroupWatch::wait_for_records(double seconds) const {
    const Stopwatch watch;
    while (true) {
        std::vector<int> missing;
        bool is_worth_waiting = false;
        for (int rank = 0; rank < group_.size(); ++rank) {
            std::error_code error;
            if (std::filesystem::exists(file_of(rank), error)) continue;
            missing.push_back(rank);
            is_worth_waiting |= !has_died(rank);
        }
        if (!is_worth_waiting || watch.seconds() >= seconds) return missing;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
}

std::vector<FlightRecord> GroupWatch::read_records(std::span<const int> silent) const {
    std::vector<FlightRecord> records;
    for (int rank = 0; rank < group_.size(); ++rank) {
        if (std::ranges::find(silent, rank) != silent.end()) continue;
        try {
            const auto bytes = storage::read_file_bytes(file_of(rank), kRecordLimitBytes);
            records.push_back(
                report::flight_from_json(storage::text_of(bytes), file_of(rank).string()));
        } catch (const Error&) {
            continue;  // the others' must do
        }
    }
    return records;
}

std::string GroupWatch::describe(int group_rank) const {
    const int world_rank = start_.controller.world_rank_of(start_.place.group, group_rank);
    return fmt::format("rank {} (world rank {} on {}, process {}) {}", group_rank, world_rank,
                       start_.hostnames[static_cast<std::size_t>(world_rank)],
                       processes_[static_cast<std::size_t>(group_rank)].number,
                       has_died(group_rank) ? "has died" : "does not answer");
}

/// One that is stopped, or waits for a device, would stay when all others have gone.
void GroupWatch::kill_silent(std::span<const int> silent) const {
    if (start_.exit_ends_others) return;
    for (const int rank : silent) {
        const auto index = static_cast<std::size_t>(rank);
        if (!can_be_looked_at_[index] || !is_running(processes_[index])) continue;
        kill(static_cast<pid_t>(processes_[index].number), SIGKILL);
    }
}

WatchReport GroupWatch::report(const std::string& reason) {
    watchdog_.end();
    write_record(reason);
    WatchReport found{reason, wait_for_records(kSecondsForRecords)};
    const std::vector<FlightRecord> records = read_records(found.silent_ranks);
    if (!records.empty()) {
        const auto farthest = std::ranges::max_element(records, {}, &FlightRecord::steps_done);
        found.failure += fmt::format(", behind {} steps", farthest->steps_done);
    }
    std::vector<std::string> named;
    for (const int rank : found.silent_ranks) {
        if (named.size() < kNamed) named.push_back(describe(rank));
    }
    if (found.silent_ranks.size() > kNamed) {
        named.push_back(fmt::format("{} more likewise", found.silent_ranks.size() - kNamed));
    }
    if (named.empty()) named.push_back(report::describe_laggards(records));
    found.failure += fmt::format(": {}; the flight records are in groups/{}/flight",
                                 fmt::join(named, "; "), start_.place.group);
    kill_silent(found.silent_ranks);
    return found;
}

}  // namespace hpcai::benchmark
