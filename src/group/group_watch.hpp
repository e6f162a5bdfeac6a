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
#include <hpcai/base/flight_record.hpp>
#include <hpcai/base/log.hpp>
#include <hpcai/base/process.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/peer_groups.hpp>
#include <hpcai/training/flight_recorder.hpp>
#include <hpcai/training/trainer.hpp>
#include <hpcai/training/watchdog.hpp>

namespace hpcai::group {

/// What the ranks that still answer have found of those that do not.
struct WatchReport {
    std::string failure;           // of the group: what and, on the rank that speaks, who and where
    bool has_lost_leader = false;  // the group's first rank does not answer
    bool speaks = true;            // this rank is the first that does
};

/// Notices that a rank of this one's group hangs, here or elsewhere, or has died: a watchdog of the
/// own steps, and a look each second at the next process of the group on this node. One a rank.
class GroupWatch {
public:
    /// Everything outlives it. Removes the flight records of programs before. Collective.
    GroupWatch(const context::RunContext& context, comm::Communicator& group,
               training::FlightRecorder& recorder);
    ~GroupWatch();
    GroupWatch(const GroupWatch&) = delete;
    GroupWatch& operator=(const GroupWatch&) = delete;

    /// From now on calls that wait for other `ranks`, of the group, look whether they still may.
    void watch(comm::Communicator& ranks);

    /// The first step begins, `steps_done` of all being done.
    void begin(std::int64_t steps_done);
    /// Throws Error(watchdog) when the step came too late.
    void step_done(const training::StepReport& step);
    /// What is no step begins, such as "checkpoint", and may take `seconds`; below 0: as long as it
    /// takes.
    void pause(const char* name, double seconds);
    /// Behind it.
    void go_on();
    /// The last step is done.
    void end();

    /// What is allowed to a checkpoint.
    double checkpoint_seconds() const { return context_.config.run.first_step_timeout_seconds; }

    /// Behind a failure of which some rank is the cause that does not go on: writes this rank's
    /// flight record and waits a while for those of the others. The first rank that answers says
    /// from them who is silent or last. Processes of this node that were stopped (SIGSTOP) are
    /// killed where that ends no others. Not collective.
    WatchReport report(const std::string& reason);

private:
    void look();
    std::optional<int> find_next_here() const;
    /// What is known of another rank.
    struct Standing {
        std::optional<FlightRecord> record;
        bool answers = false;  // and has not died since
        bool is_gone = false;  // it has died, or was stopped
    };

    training::WatchdogSettings settings();
    void tell_of_expiry(const std::string& reason);
    bool may_end();
    void write_record(const std::string& reason, bool answers);
    double seconds_for_records() const;
    std::chrono::milliseconds between_readings() const;
    Standing await(int group_rank, const Stopwatch& watch) const;
    std::string tell_of_all(const std::string& reason, const Stopwatch& watch) const;
    std::filesystem::path file_of(int group_rank) const;
    bool has_died(int group_rank) const;
    bool is_halted(int group_rank) const;
    std::string describe(int group_rank, const Standing& standing) const;
    void kill_stopped() const;

    const context::RunContext& context_;
    comm::Communicator& group_;
    training::FlightRecorder& recorder_;
    std::vector<ProcessId> processes_;    // by group rank
    std::vector<bool> can_be_looked_at_;  // likewise: of this node, and /proc shows it
    std::optional<int> next_here_;        // of these, the group rank behind this one's
    Stopwatch since_look_;
    std::vector<comm::Communicator*> watched_;
    std::timed_mutex writing_;
    std::atomic<bool> is_written_ = false;  // by the thread that trains
    Stopwatch since_expiry_;                // of the watchdog's thread, as the next
    std::optional<PeerGroups> others_;
    training::Watchdog watchdog_;  // the last member: its thread uses all others
};

}  // namespace hpcai::group
