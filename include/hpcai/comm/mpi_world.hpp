// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/membership_agreement.hpp>

namespace hpcai::comm {

struct WorldLimits {
    double wait_seconds = 3600;    // longest wait for other ranks inside one call
    double finalize_seconds = 30;  // longest stay in MPI_Finalize where nobody is still at work
    double longest_seconds = 7.0 * 24 * 3600;          // longer than any run
    std::size_t largest_count = std::size_t{1} << 30;  // elements in one MPI call, longer are cut
};

/// All ranks together while the program starts: the only time at which a collective may span the
/// groups. `split` ends it.
class StartUp {
public:
    explicit StartUp(std::unique_ptr<Communicator> everyone);

    Communicator& everyone() { return *everyone_; }

    /// Host name of every world rank.
    const std::vector<std::string>& hostnames() const { return hostnames_; }

    /// Node of every world rank; ranks that share memory share a node. Nodes count from 0 in the
    /// order of their lowest rank.
    const std::vector<int>& node_of_world_rank() const { return node_of_world_rank_; }

    /// The group of this rank: ranks of the same `color`, ordered by `key`. Collective, the last
    /// over all ranks.
    std::unique_ptr<Communicator> split(int color, int key) &&;

private:
    friend class MpiWorld;
    std::unique_ptr<Communicator> everyone_;
    std::vector<std::string> hostnames_;
    std::vector<int> node_of_world_rank_;
};

/// What the leaders agreed on, as this leader knows it.
struct AgreedMembers {
    Membership decision;
    std::unique_ptr<Communicator> leaders;  // the voting leaders in group order; null for others
};

/// What follows a run.
enum class Afterwards { the_end, another_run };

/// MPI from its initialisation to its end; one in a process, used by one thread. After the start
/// it speaks point to point only, so that a dead group cannot stop the others.
class MpiWorld {
public:
    /// Throws Error(launch) when MPI does not start.
    explicit MpiWorld(const WorldLimits& limits = {});
    /// Calls finish(internal) unless finish() was called.
    ~MpiWorld();
    MpiWorld(const MpiWorld&) = delete;
    MpiWorld& operator=(const MpiWorld&) = delete;

    int rank() const { return rank_; }
    int size() const { return size_; }

    /// Name and version of the MPI library. Works without an MpiWorld.
    static std::string library_version();

    /// Learns hosts and nodes. Collective; once, and again after each release to another run.
    StartUp start_up();

    /// Called by every living leader when its group has completed or failed. `leader_world_ranks`
    /// has one rank for each group. Returns when the leaders agree or the deadlines have passed,
    /// whoever is dead: for a completed group a few status_seconds after the last other completed
    /// one, however many groups there are; for a failed group after at most longest_seconds more.
    AgreedMembers agree_on_members(const GroupStatus& mine, std::span<const int> leader_world_ranks,
                                   const MembershipAgreementDeadlines& deadlines);

    /// Tells the leaders that the group of `lost`, whose leader does not answer, has failed: by
    /// another rank of it, in place of agree_on_members. Returns at once.
    void announce_loss(const GroupStatus& lost, std::span<const int> leader_world_ranks);

    /// Call it after agree_on_members, or in a lost group, if no rank of other groups is still at
    /// work.
    void mark_others_gone() {
        others_may_work_ = false;
        is_somebody_lost_ = true;
    }

    /// Lets the ranks that wait in wait_for_exit_permit(rank()) go on, and tells them what comes
    /// and whether this rank knows that nobody is still at work. Another run may follow only where
    /// every rank of the world is released to it. Returns at once; ranks that are gone are passed
    /// over.
    void release(std::span<const int> world_ranks, Afterwards afterwards = Afterwards::the_end);

    /// Waits, without using the processor, for the release by `world_rank`; nothing when `seconds`
    /// pass without it.
    std::optional<Afterwards> wait_for_exit_permit(int world_rank, double seconds);

    /// How long to wait for a rank that may still be at work while this one is not: an exit would
    /// end the other ranks too, unless the launcher was told to let them live.
    double grace_seconds() const;

    /// Whether the launcher ends all ranks when one of them exits before the others.
    bool exit_would_end_others() const;

    /// Ends MPI once all ranks do. When that does not happen in time, as after the death of a rank,
    /// the process ends here with `exit_code`: after finalize_seconds, a tenth of it where a vote
    /// knew of ranks that are lost (twice that with ok, as the launcher takes the code of the first
    /// that ends), or after longest_seconds when it left groups out that may still be at work and
    /// this exit would end them.
    void finish(ExitCode exit_code) noexcept;

    /// Ends all ranks of the job with `exit_code`: for a start that fails on some ranks only.
    [[noreturn]] void abort(ExitCode exit_code) noexcept;

private:
    struct Outbox;
    int tag_of(int purpose) const;

    WorldLimits limits_;
    int rank_ = 0;
    int size_ = 1;
    int runs_ = 0;
    bool may_start_ = true;
    bool finished_ = false;
    bool others_may_work_ = false;
    bool is_somebody_lost_ = false;
    std::unique_ptr<Outbox> outbox_;
};

}  // namespace hpcai::comm
