// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/process.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/peer_groups.hpp>
#include <hpcai/records/flight_record.hpp>
#include <hpcai/training/flight_recorder.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/watchdog.hpp>

namespace hpcai::group {

inline constexpr double kNoTimeLimit = -1;  // for GroupWatch::pause()

/// The diagnosis of a responsive rank about the ranks that do not respond.
struct WatchReport {
    std::string failure;           // what failed; if is_reporter, also which rank
    bool has_lost_leader = false;  // the group's first rank does not respond
    bool is_reporter = true;       // this is the first rank that responds
};

/// Detects a rank of this group that hangs or has died. Every rank has a watchdog for its own
/// steps. While a rank waits for others, it checks every second whether the group's next process on
/// its node has died.
class GroupWatch {
public:
    /// All arguments outlive the object. Removes this rank's old flight record. Collective.
    GroupWatch(const context::RunContext& context, comm::Communicator& group,
               training::FlightRecorder& recorder);
    ~GroupWatch();

    /// Makes `ranks` poll this object whenever a call waits for other ranks.
    void watch(comm::Communicator& ranks);

    /// Begins the first step after `steps_done` steps, those of earlier launches included.
    void begin(std::int64_t steps_done);
    /// Throws Error(watchdog) if the step exceeded its time limit.
    void step_done(const training::StepReport& step);
    /// Begins a phase between two steps, such as "checkpoint", of at most `seconds`; a negative
    /// number means no limit.
    void pause(const char* name, double seconds);
    void resume() { watchdog_.resume(); }  // ends the phase
    void end() { watchdog_.end(); }

    /// The time that a checkpoint may take (CONFIG, run.step_timeout_seconds).
    double checkpoint_timeout_seconds() const {
        return context_.config.run.first_step_timeout_seconds;
    }

    /// Diagnoses a failure by a hanging or dead rank. Writes this rank's flight record and waits,
    /// for a limited time, until one of the lower ranks responds. The first responsive rank reads
    /// all records and names the unresponsive ranks or, if all respond, the slowest. Kills stopped
    /// processes (SIGSTOP) of the group on this node unless this ends other ranks. Not collective.
    WatchReport report(const std::string& reason);

private:
    void poll();
    struct RankState {
        std::optional<FlightRecord> record;
        bool is_responsive = false;  // the rank has detected the failure and not died since
        bool is_gone = false;        // the rank has died or was stopped
    };

    training::WatchdogSettings settings();
    void on_timeout(const std::string& reason);
    void write_record(const std::string& reason, bool by_training_thread);
    double record_wait_seconds() const;
    RankState await(int group_rank, const Stopwatch& waited) const;
    std::string describe_ranks(const std::string& reason, const Stopwatch& waited) const;
    std::filesystem::path flight_file(int group_rank) const;
    ProcessState process_state(int group_rank) const;  // unknown unless visible
    std::string describe(int group_rank, const RankState& state) const;

    const context::RunContext& context_;
    comm::Communicator& group_;
    training::FlightRecorder& recorder_;
    std::vector<ProcessId> processes_;  // by group rank
    std::vector<bool> is_visible_;    // by group rank: another rank of this node, visible in /proc
    std::optional<int> polled_rank_;  // the next visible group rank
    Stopwatch since_poll_;
    std::vector<comm::Communicator*> watched_ranks_;
    std::timed_mutex write_mutex_;
    std::atomic<bool> is_written_by_training_thread_ = false;  // the flight record of this rank
    Stopwatch since_expiry_;  // used only by the watchdog's thread, like peer_groups_
    std::optional<PeerGroups> peer_groups_;
    training::Watchdog watchdog_;  // the last member: its thread uses all others
};

}  // namespace hpcai::group
