// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

enum class GroupState : std::int32_t {
    absent,  // no report was received, or the group's leader did not join the decision
    completed,
    failed,
    lost,  // the leader does not answer; another rank of the group reported the failure
};

/// The status of a group, of fixed size. The group's leader sends it to a collector, the leader
/// that gathers all statuses. If a leader is lost, another rank of its group sends the status to
/// all other leaders.
struct GroupStatus {
    std::int32_t group = 0;
    GroupState state = GroupState::absent;
    ExitCode exit_code = ExitCode::ok;
    std::array<char, 180> reason{};  // why the group failed, truncated; zero-terminated

    static GroupStatus of(int group, GroupState state, ExitCode exit_code = ExitCode::ok,
                          std::string_view reason = "");
    std::string reason_text() const;
    /// Whether the group stopped on request and can be resumed.
    bool has_stopped() const { return exit_code == ExitCode::stopped; }
};

struct MembershipAgreementDeadlines {
    double status_seconds = 600;  // how long the leader of a completed group waits for others
    double stopped_seconds = 30;  // how long the leader of a stopped group waits for others
    double reply_seconds = 10;    // longest time in which a living leader answers
    double notice_seconds = 600;  // how long a collector counts as alive after its `notice`
    double longest_seconds = 7.0 * 24 * 3600;  // longer than any run
};

/// A group that did not complete.
struct UnfinishedGroup {
    std::int32_t group = 0;
    GroupState state = GroupState::absent;
    ExitCode exit_code = ExitCode::ok;
};

/// The result of the agreement for one leader. If `agreed`, all leaders that are not absent have
/// the same `unfinished`, and completed groups vote unless a group has stopped. If not `agreed`,
/// the other groups continued without this group or did not answer.
struct Membership {
    bool agreed = false;
    int groups = 0;
    std::shared_ptr<const std::vector<UnfinishedGroup>> unfinished;  // ascending
    // Statuses with reasons. The collector and the leader of writer() have those of all unfinished
    // groups that are not absent; a leader without agreement has its own group's; others have none.
    std::vector<GroupStatus> known;

    /// Returns the status of a group, with a reason if it is in `known`. Without agreement other
    /// groups are absent.
    GroupStatus status(int group) const;
    std::vector<GroupStatus> statuses() const;
    /// Returns the completed groups if `agreed`. They vote unless a group has stopped.
    std::vector<int> voters() const;
    /// Whether voters() has the group.
    bool votes(int group) const { return agreed && status(group).state == GroupState::completed; }
    bool has_absent_group() const;  // also true if not agreed
    /// Whether a group failed by a timeout, as after the loss of a rank.
    bool has_lost_rank() const { return has_group_with_code(ExitCode::watchdog); }
    bool has_stopped_group() const { return has_group_with_code(ExitCode::stopped); }
    /// Returns the group whose leader writes the result: the first completed group, else the first
    /// group in state `failed`. -1 if there is no such group or not `agreed`.
    int writer() const;

private:
    bool has_group_with_code(ExitCode code) const;
};

enum class MembershipAgreementKind : std::int32_t {
    status,     // follower to collector; for a lost group: one of its ranks to all leaders
    query,      // follower to collector, halfway through the follower's wait: expects a notice
    notice,     // a collector is alive; leaders follow the one with the highest group
    proposal,   // collector to its followers, in a tree; they join its decision or decline
    joined,     // follower to collector; it joins no other collector before `withdrawn`
    declined,   // leader to collector: the leader is not its follower or has decided
    withdrawn,  // collector to its followers, which follow the next collector
    result,     // collector to the followers that joined, in a tree
    received,   // follower to collector: the follower has the result
    closed,     // collector to all leaders that did not join
};

struct AgreementMessage {
    MembershipAgreementKind kind = MembershipAgreementKind::status;
    std::int32_t from_group = 0;
    // notice: longest time until the next notice; status: how long this group waits for others
    double seconds = 0;
    std::vector<GroupStatus> statuses{};  // status: of from_group; result to the writer: `known`
    std::shared_ptr<const std::vector<UnfinishedGroup>> unfinished{};  // result
    std::vector<int> forward_to{};  // proposal, result: groups to which the receiver sends a copy

    std::vector<std::byte> to_bytes() const;
    /// Throws Error(internal) if `bytes` have another size than their header states.
    static AgreementMessage from_bytes(std::span<const std::byte> bytes);
};

struct AddressedMessage {
    int to_group = 0;
    AgreementMessage message;
};

/// One leader's state machine of the protocol by which leaders agree on the groups that vote: the
/// groups whose predictions form the ensemble. The caller supplies transport and clock.
///
/// Following: each leader sends its status to a collector, first the leader of group 0. If the
/// collector is lost, or silent for status_seconds, the leader follows the leader of the next
/// group. After the leaders of groups 0 to 3, or when its own group is next, it becomes a
/// collector. After a stop, the scheduler may end the job soon. The leader of a stopped group
/// therefore waits only stopped_seconds in all, but at least 2 x reply_seconds for each collector.
///
/// Collecting: a collector waits until all groups have reported, or until the waiting times of all
/// completed groups, including its own, are over. Those of failed groups do not count, so an early
/// failure does not end the training of other groups. If a group has stopped, the callers omit the
/// vote, and only the waiting times of stopped groups count.
///
/// Deciding: the collector proposes a decision and decides with the followers that join it, so a
/// leader votes only with leaders that joined the same collector. Leaders forward proposals and
/// results, so each sends O(log(groups)) messages unless leaders are late or dead. A leader that
/// should have forwarded a message may be dead. After half of reply_seconds the collector therefore
/// repeats the message to each follower that has not replied. It waits at most reply_seconds.
///
/// Times are seconds of any monotonic clock.
class MembershipAgreement {
public:
    MembershipAgreement(const GroupStatus& mine, int groups,
                        const MembershipAgreementDeadlines& deadlines, double now);

    void receive(const AgreementMessage& message, double now);
    /// Handles deadlines. Call it after all messages that have arrived are received.
    void advance(double now);
    /// Returns and removes the messages to send, in order.
    std::vector<AddressedMessage> take_outgoing() { return std::exchange(outgoing_, {}); }

    bool decided() const { return phase_ == Phase::decided; }
    const Membership& decision() const { return decision_; }

private:
    enum class Phase { following, joined, collecting, proposing, announcing, decided };

    void follow(int collector, double now);
    void follow_next(double now);
    void collect(double now);
    void receive_status(const AgreementMessage& message, double now);
    void receive_loss(const GroupStatus& status, double now);
    void receive_notice(int collector, double seconds, double now);
    void receive_proposal(int collector, double now);
    void receive_reply(int from_group, MembershipAgreementKind kind, double now);
    void wait_for_replies(std::span<const int> groups, double now);
    void receive_withdrawal(int collector, double now);
    void receive_decision(const AgreementMessage& message);
    void continue_collecting(double now);
    void propose(double now);
    void withdraw();
    void decide(double now);
    void send_result(std::span<const int> groups);
    void send_in_tree(AgreementMessage message, std::span<const int> groups);
    void decide_alone();
    bool is_lost(int group) const;
    std::vector<int> reported_peers() const;  // without lost groups, which cannot answer
    void send(int to_group, MembershipAgreementKind kind, double seconds = 0);

    GroupStatus mine_;
    int groups_;
    MembershipAgreementDeadlines deadlines_;
    Phase phase_ = Phase::following;
    int collector_ = 0;  // group whose leader this leader follows, or its own group
    double phase_end_ = 0;
    double reminder_ = 0;                       // when this leader asks again if it has no answer
    std::map<int, GroupStatus> reports_;        // by group, including this leader's
    std::optional<double> completed_deadline_;  // end of all waits of completed groups; empty: none
    std::optional<double> stopped_deadline_;    // end of all waits of stopped groups; empty: none
    std::set<int> missing_replies_;  // groups that have not replied to the proposal or the result
    std::set<int> joined_;
    std::vector<AddressedMessage> outgoing_;
    Membership decision_;
};

}  // namespace hpcai::comm
