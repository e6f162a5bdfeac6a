// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpcai/base/error.hpp"

namespace hpcai::comm {

enum class GroupState : std::int32_t { absent, completed, failed };

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
};

struct EndGameDeadlines {
    double status_seconds = 600;  // how long a leader that is done waits for the others
    double reply_seconds = 10;    // how long a living leader may take to answer
};

/// How the end game ended for one leader. Where `agreed`, all leaders that are not absent in
/// `groups` hold the same `groups` (one for each group, in order), and those of completed groups
/// vote. Else this group is on its own: the others went on without it, or have fallen silent.
struct EndGameDecision {
    bool agreed = false;
    std::vector<GroupStatus> groups;

    std::vector<int> voters() const;
    bool votes(int group) const;
};

enum class EndGameKind : std::int32_t {
    status,     // follower to collector
    notice,     // collector: I collect, follow me unless you follow a later one
    proposal,   // collector: will you vote with me?
    joined,     // follower: yes, and with nobody else
    left,       // follower: no, I went on to another
    withdrawn,  // collector: go on to the next
    result,     // collector to those who joined
    closed,     // collector to all others
};

struct EndGameMessage {
    EndGameKind kind = EndGameKind::status;
    std::int32_t from_group = 0;
    double seconds_left = 0;          // notice: until the collector decides
    std::vector<GroupStatus> groups;  // status: one; result: all

    std::vector<std::byte> to_bytes() const;
    /// Throws Error(internal) unless `bytes` came from to_bytes.
    static EndGameMessage from_bytes(std::span<const std::byte> bytes);
};

struct AddressedMessage {
    int to_group = 0;
    EndGameMessage message;
};

/// The agreement of the leaders on who is alive, seen by one of them; without MPI and clock, which
/// the caller supplies. Each leader sends its status to the lowest leader and follows it; when that
/// is silent for status_seconds, the next. The first that finds itself the lowest left collects
/// statuses until its deadline, proposes, and decides with those that join: nobody votes with a
/// leader that has not said so, so a list cannot contain one that waits elsewhere. Times are
/// seconds of any clock that never runs back.
class EndGame {
public:
    EndGame(const GroupStatus& mine, int groups, const EndGameDeadlines& deadlines, double now);

    void receive(const EndGameMessage& message, double now);
    /// Acts on deadlines. Call it after every message that is there has been received.
    void advance(double now);
    /// The messages to send, in order.
    std::vector<AddressedMessage> take_outgoing();

    bool decided() const { return phase_ == Phase::decided; }
    const EndGameDecision& decision() const { return decision_; }

private:
    enum class Phase { following, joined, collecting, proposing, decided };

    void follow(int collector, double now);
    void collect(double now);
    void receive_status(const GroupStatus& status);
    void receive_notice(int collector, double seconds_left, double now);
    void receive_proposal(int collector, double now);
    void receive_reply(int from_group, EndGameKind kind, double now);
    void receive_withdrawal(int collector, double now);
    void receive_decision(const EndGameMessage& message);
    bool all_later_groups_reported() const;
    void propose(double now);
    void withdraw();
    void decide();
    void stay_alone();
    void send(int to_group, EndGameKind kind, double seconds_left = 0,
              std::vector<GroupStatus> groups = {});

    GroupStatus mine_;
    EndGameDeadlines deadlines_;
    Phase phase_ = Phase::following;
    int collector_ = 0;  // the leader this one follows, or itself
    double until_ = 0;
    std::vector<GroupStatus> statuses_;  // absent: not heard of
    std::vector<bool> joined_;
    std::vector<AddressedMessage> outgoing_;
    EndGameDecision decision_;
};

}  // namespace hpcai::comm
