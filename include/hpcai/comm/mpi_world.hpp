// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/membership_agreement.hpp>

namespace hpcai::comm {

struct WorldLimits {
    double wait_seconds = 3600;                // longest wait for other ranks in one call
    double finalize_seconds = 30;              // time limit of finish() in most cases
    double longest_seconds = 7.0 * 24 * 3600;  // longer than any run
    // Maximum number of elements in one MPI call; larger buffers are split.
    std::size_t largest_count = std::size_t{1} << 30;
};

/// The start-up phase, the only phase with collectives over all ranks besides MpiWorld::finish().
/// split() ends it.
class StartUp {
public:
    explicit StartUp(std::unique_ptr<Communicator> everyone) : everyone_(std::move(everyone)) {}

    Communicator& everyone() { return *everyone_; }

    /// Returns the host name of every node: that of its lowest rank.
    const std::vector<std::string>& hosts() const { return hosts_; }
    const std::string& host(std::size_t rank) const { return hosts_[node_of_world_rank_[rank]]; }

    /// Returns the node of every world rank; ranks that share memory share a node. Nodes have
    /// numbers from 0 in the order of their lowest ranks.
    const std::vector<int>& node_of_world_rank() const { return node_of_world_rank_; }

    /// Makes the communicator of this rank's group: ranks with the same `color`, ordered by `key`.
    /// The last collective of the start-up.
    std::unique_ptr<Communicator> split(int color, int key) &&;

private:
    friend class MpiWorld;
    std::unique_ptr<Communicator> everyone_;
    std::vector<std::string> hosts_;
    std::vector<int> node_of_world_rank_;
};

/// The result of agree_on_members for one leader.
struct AgreedMembers {
    Membership decision;
    std::unique_ptr<Communicator> leaders;  // of voters(), in their order; null at other leaders
};

enum class NextAction { exit, another_run };

/// Owns MPI until MPI_Finalize: one object in a process, used by one thread. After the start-up it
/// uses point-to-point messages, so that a dead group cannot block other groups. Only finish() and
/// making the voters' communicator are collective; both have a time limit.
class MpiWorld {
public:
    /// Throws Error(launch) if MPI does not start.
    explicit MpiWorld(const WorldLimits& limits = {});
    /// Calls finish(internal) unless finish() was called.
    ~MpiWorld();

    int rank() const { return rank_; }
    int size() const { return size_; }

    /// Returns name and version of the MPI library. Works without an MpiWorld.
    static std::string library_version();

    /// Gathers hosts and nodes. Collective. Call it once for each run.
    StartUp start_up();

    /// Every living leader calls it when its group has completed or failed. `leader_world_ranks`
    /// has one rank for each group. Returns when the leaders agree or the deadlines have passed,
    /// whichever ranks have died. In a completed group it returns at most a few times
    /// status_seconds after the last other group has completed, for any number of groups. In a
    /// failed group it may wait longest_seconds longer. Ends the process with ExitCode::watchdog if
    /// the communicator of the voters cannot be made in time.
    AgreedMembers agree_on_members(const GroupStatus& mine, std::span<const int> leader_world_ranks,
                                   const MembershipAgreementDeadlines& deadlines);

    /// Notifies the leaders that the group of `lost` has failed and its leader does not answer.
    /// Another rank of that group calls it instead of agree_on_members. Returns at once.
    void announce_loss(const GroupStatus& lost, std::span<const int> leader_world_ranks);

    /// Shortens finish() if other groups have ended or hang. Call it after any agree_on_members().
    void mark_others_gone() {
        others_may_work_ = false;
        has_lost_ranks_ = true;
    }

    /// Releases the ranks that wait in wait_for_exit_permit(rank()). They also receive `next` and
    /// whether other ranks may still be working or are lost. Another run may follow only if every
    /// rank of the world is released for it. Returns at once; skips ranks that are gone.
    void release(std::span<const int> world_ranks, NextAction next = NextAction::exit);

    /// Waits until `world_rank` releases this rank; returns an empty value after `seconds`.
    std::optional<NextAction> wait_for_exit_permit(int world_rank, double seconds);

    /// Returns how long to wait for ranks that may still be working: longest_seconds if an exit of
    /// this process would end them, else wait_seconds.
    double grace_seconds() const {
        return exit_would_end_others() ? limits_.longest_seconds : limits_.wait_seconds;
    }

    /// Whether the launcher ends all ranks if one of them exits before the others.
    bool exit_would_end_others() const;

    /// Finalizes MPI together with all ranks. If that exceeds the time limit, for example after the
    /// death of a rank, ends the process with `exit_code`. The limit is finalize_seconds, or a
    /// tenth of it if ranks are known to be lost. It is doubled for ExitCode::ok, so that a process
    /// with an error ends first: the launcher takes the first exit code. It is longest_seconds if
    /// groups outside of the agreement may still be working and this exit would end them.
    void finish(ExitCode exit_code) noexcept;

    /// Ends all ranks of the job with `exit_code`, for a failure that other ranks could not detect.
    [[noreturn]] void abort(ExitCode exit_code) noexcept;

private:
    struct Outbox;
    int run_tag(int purpose) const;

    WorldLimits limits_;
    int rank_ = 0;
    int size_ = 1;
    int runs_ = 0;
    bool may_start_ = true;
    bool finished_ = false;
    bool others_may_work_ = false;
    bool has_lost_ranks_ = false;
    std::unique_ptr<Outbox> outbox_;
};

}  // namespace hpcai::comm
