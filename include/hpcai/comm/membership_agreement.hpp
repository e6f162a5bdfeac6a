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
#include <vector>

#include <hpcai/base/error.hpp>

namespace hpcai::comm {

enum class GroupState : std::int32_t {
    absent,  // nobody has heard of it
    completed,
    failed,
    lost,  // failed, and its leader does not answer: another of its ranks says so
};

/// What a leader tells the others about its group. Fixed size: it travels as one message.
struct GroupStatus {
    std::int32_t group = 0;
    GroupState state = GroupState::absent;
    ExitCode exit_code = ExitCode::ok;
    std::array<char, 180> reason{};  // why it failed, ends with a zero

    /// `reason` is cut to what fits.
    static GroupStatus of(int group, GroupState state, ExitCode exit_code = ExitCode::ok,
                          std::string_view reason = "");
    std::string reason_text() const;
    /// Whether the group has stopped, to go on another time.
    bool has_stopped() const { return exit_code == ExitCode::stopped; }
};

struct MembershipAgreementDeadlines {
    double status_seconds = 600;  // how long a leader that is done waits for the others
    double stopped_seconds = 30;  // how long one whose group has stopped does
    double reply_seconds = 10;    // how long a living leader may take to answer
    double notice_seconds = 600;  // a collector speaks to its followers at least so often
    double longest_seconds = 7.0 * 24 * 3600;  // longer than any run
};

/// A group that did not complete.
struct GroupEnd {
    std::int32_t group = 0;
    GroupState state = GroupState::absent;
    ExitCode exit_code = ExitCode::ok;
};

/// How the end game ended for one leader. Where `agreed`, all leaders that are not absent hold the
/// same list, and those of completed groups vote. Else this group is on its own: the others went
/// on without it, or have fallen silent. Of many groups it takes little memory.
struct Membership {
    bool agreed = false;
    int groups = 0;
    std::shared_ptr<const std::vector<GroupEnd>> unfinished;  // ascending; all others completed
    std::vector<GroupStatus> known;  // with reasons: the failed groups at the writer, else oneself

    /// Has a reason only if this leader knows it. Without agreement the others are absent.
    GroupStatus status(int group) const;
    /// The statuses of all groups, in order.
    std::vector<GroupStatus> statuses() const;
    std::vector<int> voters() const;
    bool votes(int group) const;
    bool anyone_absent() const;
    /// Whether a group has lost a rank, as its leader or another of its ranks has said.
    bool anyone_lost() const { return has_anyone_ended_with(ExitCode::watchdog); }
    bool anyone_stopped() const { return has_anyone_ended_with(ExitCode::stopped); }
    /// The leader that writes the result: the first that votes or, when none does, that of a group
    /// that failed and is not lost. -1 when not agreed or when there is none.
    int writer() const;

private:
    bool has_anyone_ended_with(ExitCode code) const;
};

enum class MembershipAgreementKind : std::int32_t {
    status,     // follower to collector; of a lost group one of its ranks to all leaders
    notice,     // collector: I collect, follow me unless you follow a later one
    proposal,   // collector: will you vote with me?
    joined,     // follower: yes, and with nobody else
    left,       // follower: no, I went on to another
    withdrawn,  // collector: go on to the next
    result,     // collector to those who joined
    closed,     // collector to all others
};

struct AgreementMessage {
    MembershipAgreementKind kind = MembershipAgreementKind::status;
    std::int32_t from_group = 0;
    // notice: until the next; status: how long a completed or stopped group would wait for others
    double seconds = 0;
    std::vector<GroupStatus> statuses;  // status: one; result to the writer: those that failed
    std::shared_ptr<const std::vector<GroupEnd>> unfinished;  // result; one list for all receivers

    std::vector<std::byte> to_bytes() const;
    /// Throws Error(internal) unless `bytes` came from to_bytes.
    static AgreementMessage from_bytes(std::span<const std::byte> bytes);
};

struct AddressedMessage {
    int to_group = 0;
    AgreementMessage message;
};

/// The agreement of the leaders on who is alive, seen by one of them; without MPI and clock, which
/// the caller supplies. Each leader sends its status to the lowest leader and follows it; when that
/// is silent for status_seconds, the next; after four silent ones it collects itself. A collector
/// waits until all groups have reported or the patience of every completed group is over, its own
/// included; a failed group has none, so that one which fails early ends nobody's training. Where a
/// group has stopped there is no vote, and who asked it to stop may end them all soon: only the
/// patience of those that have stopped counts then. Of a lost group nothing more is expected:
/// whoever follows its leader goes on to the next. Then it proposes, and decides with those that
/// join: nobody votes with a leader that has not said so, so a list cannot contain one that waits
/// elsewhere. Times are seconds of any clock that never runs back.
class MembershipAgreement {
public:
    MembershipAgreement(const GroupStatus& mine, int groups,
                        const MembershipAgreementDeadlines& deadlines, double now);

    void receive(const AgreementMessage& message, double now);
    /// Acts on deadlines. Call it after every message that is there has been received.
    void advance(double now);
    /// The messages to send, in order.
    std::vector<AddressedMessage> take_outgoing();

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
    void collecting_goes_on(double now);
    void propose(double now);
    void propose_to(int group);
    void withdraw();
    void decide();
    void send_decision(const Membership& decision);
    void stay_alone();
    bool is_lost(int group) const;
    double grace_ends(double now) const;
    std::vector<int> reported_others() const;  // that can answer
    void send(int to_group, MembershipAgreementKind kind, double seconds = 0);

    GroupStatus mine_;
    int groups_;
    MembershipAgreementDeadlines deadlines_;
    Phase phase_ = Phase::following;
    int collector_ = 0;  // the leader this one follows, or itself
    double until_ = 0;
    double next_notice_ = 0;
    std::map<int, GroupStatus> reports_;  // who told its status, itself included
    std::optional<double> grace_until_;   // of the completed among them; none: nobody completed
    std::optional<double> stop_until_;    // of those that have stopped, likewise
    std::set<int> missing_joins_;
    std::set<int> joined_;
    std::vector<AddressedMessage> outgoing_;
    Membership decision_;
};

}  // namespace hpcai::comm
