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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

enum class GroupState : std::int32_t {
    absent,  // no report was received, or the group's leader did not join the decision
    completed,
    failed,
    lost,  // its leader does not answer; another of its ranks reported the failure
};

/// The status of a group, of fixed size. Its leader sends it to a collector; if the leader is lost,
/// another rank of the group sends it to all other leaders.
struct GroupStatus {
    std::int32_t group = 0;
    GroupState state = GroupState::absent;
    ExitCode exit_code = ExitCode::ok;
    std::array<char, 180> reason{};  // why it failed; zero-terminated

    /// `reason` is truncated to fit.
    static GroupStatus of(int group, GroupState state, ExitCode exit_code = ExitCode::ok,
                          std::string_view reason = "");
    std::string reason_text() const;
    /// Whether the group stopped on request and can be resumed.
    bool has_stopped() const { return exit_code == ExitCode::stopped; }
};

struct MembershipAgreementDeadlines {
    double status_seconds = 600;  // how long a leader of a completed group waits for others
    double stopped_seconds = 30;  // how long a leader of a stopped group waits
    double reply_seconds = 10;    // longest time in which a living leader answers
    double notice_seconds = 600;  // longest time between two notices of a collector
    double longest_seconds = 7.0 * 24 * 3600;  // longer than any run
};

/// A group that did not complete.
struct UnfinishedGroup {
    std::int32_t group = 0;
    GroupState state = GroupState::absent;
    ExitCode exit_code = ExitCode::ok;
};

/// The result of the agreement for one leader. If `agreed`, all leaders that are not absent have
/// the same `unfinished`, and completed groups vote unless a group has stopped. Otherwise this
/// group is alone: the other groups continued without it or did not answer. Needs little memory.
struct Membership {
    bool agreed = false;
    int groups = 0;
    std::shared_ptr<const std::vector<UnfinishedGroup>> unfinished;  // ascending
    // The collector and the writer know every unfinished group that is not absent, with its
    // reason; without agreement, a leader knows only its own.
    std::vector<GroupStatus> known;

    /// The status of a group; with a reason only if this leader knows it. Without agreement other
    /// groups are absent.
    GroupStatus status(int group) const;
    std::vector<GroupStatus> statuses() const;
    std::vector<int> voters() const;
    bool votes(int group) const { return agreed && status(group).state == GroupState::completed; }
    bool has_absent_group() const;  // also true if not agreed
    /// Whether a group has lost a rank, as reported by one of its ranks.
    bool has_lost_rank() const { return has_group_with_code(ExitCode::watchdog); }
    bool has_stopped_group() const { return has_group_with_code(ExitCode::stopped); }
    /// The group whose leader writes the result: the first that votes, else the first failed group
    /// that is not lost. -1 if not agreed or if there is none.
    int writer() const;

private:
    bool has_group_with_code(ExitCode code) const;
};

enum class MembershipAgreementKind : std::int32_t {
    status,     // follower to collector; for a lost group: one of its ranks to all leaders
    notice,     // collector: follow this group, unless the receiver follows a later one
    proposal,   // collector asks a follower to join its decision
    joined,     // follower: it joins, and joins no other collector
    declined,   // follower: it does not join, as it follows another collector or has decided
    withdrawn,  // collector: follow the next collector
    result,     // collector to the followers that joined
    closed,     // collector to all leaders that did not join
};

struct AgreementMessage {
    MembershipAgreementKind kind = MembershipAgreementKind::status;
    std::int32_t from_group = 0;
    // notice: longest time until the next; status: how long a completed or stopped group waits
    double seconds = 0;
    std::vector<GroupStatus> statuses;  // status: one; result to the writer: Membership::known
    std::shared_ptr<const std::vector<UnfinishedGroup>> unfinished;  // result: shared

    std::vector<std::byte> to_bytes() const;
    /// Throws Error(internal) unless to_bytes() made `bytes`.
    static AgreementMessage from_bytes(std::span<const std::byte> bytes);
};

struct AddressedMessage {
    int to_group = 0;
    AgreementMessage message;
};

/// State machine by which the leaders agree on the groups that vote, as seen by one leader. The
/// caller supplies transport and clock.
///
/// Each leader sends its status to the leader of group 0 and follows it as its collector. If the
/// collector is silent for status_seconds, the leader follows the leader of the next group. After
/// the leaders before it, at most four, it becomes the collector. A collector waits until all
/// groups have reported or the waiting times of all completed groups are over, including its own. A
/// failed group has no waiting time, so an early failure does not end the training of other groups.
/// If a group has stopped, the callers omit the vote, and only the waiting times of stopped groups
/// count. A stopped group leaves a silent collector when the rest of its own waiting time is over,
/// because the scheduler may end the job soon. A lost group sends nothing more, so its followers
/// continue with the next collector. After its wait a collector proposes a decision and decides
/// with the followers that join, so leaders only vote with leaders of the same collector.
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
    enum class Phase { following, joined, collecting, proposing, decided };

    void follow(int collector, double now);
    void follow_next(double now);
    void collect(double now);
    void announce(std::span<const int> groups, double now);
    void receive_status(const AgreementMessage& message, double now);
    void receive_loss(const GroupStatus& status, double now);
    void receive_notice(int collector, double seconds, double now);
    void receive_proposal(int collector, double now);
    void receive_reply(int from_group, MembershipAgreementKind kind, double now);
    void receive_withdrawal(int collector, double now);
    void receive_decision(const AgreementMessage& message);
    void continue_collecting(double now);
    void propose(double now);
    void propose_to(int group);
    void withdraw();
    void decide();
    void send_decision(const Membership& decision);
    void stay_alone();
    bool is_lost(int group) const;
    double grace_ends(double now) const;
    std::vector<int> reported_others() const;  // groups that can answer
    void send(int to_group, MembershipAgreementKind kind, double seconds = 0);

    GroupStatus mine_;
    int groups_;
    MembershipAgreementDeadlines deadlines_;
    Phase phase_ = Phase::following;
    int collector_ = 0;  // group whose leader this one follows, or its own
    double until_ = 0;
    double next_notice_ = 0;
    std::map<int, GroupStatus> reports_;  // by group, including its own
    std::optional<double> grace_until_;   // end of the waits of completed groups; empty: none
    std::optional<double> stop_until_;    // end of the waits of stopped groups; empty: none
    std::set<int> missing_joins_;
    std::set<int> joined_;
    std::vector<AddressedMessage> outgoing_;
    Membership decision_;
};

}  // namespace hpcai::comm
