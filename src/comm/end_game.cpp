// SPDX-License-Identifier: Apache-2.0
#include "hpcai/comm/end_game.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

namespace hpcai::comm {

GroupStatus GroupStatus::of(int group, GroupState state, ExitCode exit_code,
                            std::string_view reason) {
    GroupStatus status{group, state, exit_code, {}};
    std::ranges::copy(reason.substr(0, status.reason.size() - 1), status.reason.begin());
    return status;
}

std::string GroupStatus::reason_text() const {
    return std::string(reason.begin(), std::ranges::find(reason, '\0'));
}

std::vector<int> EndGameDecision::voters() const {
    std::vector<int> found;
    for (const GroupStatus& status : groups) {
        if (agreed && status.state == GroupState::completed) found.push_back(status.group);
    }
    return found;
}

bool EndGameDecision::votes(int group) const {
    const std::vector<int> found = voters();
    return std::ranges::find(found, group) != found.end();
}

namespace {

struct MessageHeader {
    EndGameKind kind;
    std::int32_t from_group;
    double seconds_left;
    std::uint64_t groups;
};
static_assert(std::is_trivially_copyable_v<MessageHeader>);
static_assert(std::is_trivially_copyable_v<GroupStatus>);

}  // namespace

std::vector<std::byte> EndGameMessage::to_bytes() const {
    const MessageHeader header{kind, from_group, seconds_left, groups.size()};
    std::vector<std::byte> bytes(sizeof(header) + groups.size() * sizeof(GroupStatus));
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::ranges::copy(std::as_bytes(std::span(groups)), bytes.begin() + sizeof(header));
    return bytes;
}

EndGameMessage EndGameMessage::from_bytes(std::span<const std::byte> bytes) {
    MessageHeader header{};
    ensure(bytes.size() >= sizeof(header), "end game: a message of {} bytes", bytes.size());
    std::memcpy(&header, bytes.data(), sizeof(header));
    const std::span<const std::byte> rest = bytes.subspan(sizeof(header));
    ensure(rest.size() % sizeof(GroupStatus) == 0 &&
               rest.size() / sizeof(GroupStatus) == header.groups,
           "end game: {} bytes for {} groups", rest.size(), header.groups);
    EndGameMessage message{header.kind, header.from_group, header.seconds_left, {}};
    message.groups.resize(header.groups);
    std::ranges::copy(rest, std::as_writable_bytes(std::span(message.groups)).begin());
    return message;
}

EndGame::EndGame(const GroupStatus& mine, int groups, const EndGameDeadlines& deadlines, double now)
    : mine_(mine), deadlines_(deadlines) {
    ensure(mine.group >= 0 && mine.group < groups, "end game: group {} of {}", mine.group, groups);
    for (int group = 0; group < groups; ++group) {
        statuses_.push_back(GroupStatus::of(group, GroupState::absent));
    }
    statuses_[static_cast<std::size_t>(mine.group)] = mine;
    joined_.resize(statuses_.size());
    follow(0, now);
}

void EndGame::receive(const EndGameMessage& message, double now) {
    ensure(message.from_group >= 0 && std::cmp_less(message.from_group, statuses_.size()),
           "end game: a message from group {} of {}", message.from_group, statuses_.size());
    switch (message.kind) {
        case EndGameKind::status:
            return receive_status(message.groups.at(0));
        case EndGameKind::notice:
            return receive_notice(message.from_group, message.seconds_left, now);
        case EndGameKind::proposal:
            return receive_proposal(message.from_group, now);
        case EndGameKind::joined:
        case EndGameKind::left:
            return receive_reply(message.from_group, message.kind, now);
        case EndGameKind::withdrawn:
            return receive_withdrawal(message.from_group, now);
        case EndGameKind::result:
        case EndGameKind::closed:
            return receive_decision(message);
    }
}

void EndGame::advance(double now) {
    if (phase_ == Phase::collecting && (all_later_groups_reported() || now >= until_)) {
        propose(now);
    }
    if (now < until_ || decided()) return;
    switch (phase_) {
        case Phase::following:
            return collector_ < mine_.group ? follow(collector_ + 1, now) : stay_alone();
        case Phase::joined:
            return stay_alone();
        case Phase::proposing:
            return decide();
        case Phase::collecting:
        case Phase::decided:
            return;
    }
}

std::vector<AddressedMessage> EndGame::take_outgoing() {
    return std::exchange(outgoing_, {});
}

void EndGame::follow(int collector, double now) {
    if (collector == mine_.group) return collect(now);
    phase_ = Phase::following;
    collector_ = collector;
    until_ = now + deadlines_.status_seconds;
    send(collector, EndGameKind::status, 0, {mine_});
}

void EndGame::collect(double now) {
    phase_ = Phase::collecting;
    collector_ = mine_.group;
    until_ = now + deadlines_.status_seconds;
    for (const GroupStatus& status : statuses_) {
        if (status.group != mine_.group) {
            send(status.group, EndGameKind::notice, deadlines_.status_seconds);
        }
    }
}

void EndGame::receive_status(const GroupStatus& status) {
    statuses_.at(static_cast<std::size_t>(status.group)) = status;
}

void EndGame::receive_notice(int collector, double seconds_left, double now) {
    if (phase_ != Phase::following && phase_ != Phase::collecting) return;
    if (collector < collector_) return;  // Given up before: its followers went on to a later one.
    if (collector > collector_) follow(collector, now);
    until_ = now + seconds_left + 2 * deadlines_.reply_seconds;
}

void EndGame::receive_proposal(int collector, double now) {
    if (phase_ == Phase::following && collector == collector_) {
        phase_ = Phase::joined;
        until_ = now + 2 * deadlines_.reply_seconds;
        send(collector, EndGameKind::joined);
    } else {
        send(collector, EndGameKind::left);
    }
}

void EndGame::receive_reply(int from_group, EndGameKind kind, double now) {
    if (phase_ != Phase::proposing) return;
    if (kind == EndGameKind::left) {
        withdraw();  // A later collector is at work, and two decisions would be two results.
        return follow(from_group, now);
    }
    joined_[static_cast<std::size_t>(from_group)] = true;
    const bool complete = std::ranges::all_of(statuses_, [&](const GroupStatus& status) {
        return status.state == GroupState::absent ||
               joined_[static_cast<std::size_t>(status.group)];
    });
    if (complete) until_ = now;
}

void EndGame::receive_withdrawal(int collector, double now) {
    const bool bound = phase_ == Phase::following || phase_ == Phase::joined;
    if (bound && collector == collector_ && collector < mine_.group) follow(collector + 1, now);
}

void EndGame::receive_decision(const EndGameMessage& message) {
    if (decided()) return;
    const bool from_own_collector = message.from_group == collector_;
    if (message.kind == EndGameKind::result && phase_ == Phase::joined && from_own_collector) {
        decision_ = {true, message.groups};
        phase_ = Phase::decided;
    } else if (phase_ != Phase::joined || from_own_collector) {
        if (phase_ == Phase::proposing) withdraw();
        stay_alone();
    }
}

bool EndGame::all_later_groups_reported() const {
    return std::all_of(
        statuses_.begin() + mine_.group, statuses_.end(),
        [](const GroupStatus& status) { return status.state != GroupState::absent; });
}

void EndGame::propose(double now) {
    phase_ = Phase::proposing;
    until_ = now + deadlines_.reply_seconds;
    bool anyone = false;
    for (const GroupStatus& status : statuses_) {
        if (status.group == mine_.group || status.state == GroupState::absent) continue;
        send(status.group, EndGameKind::proposal);
        anyone = true;
    }
    joined_[static_cast<std::size_t>(mine_.group)] = true;
    if (!anyone) until_ = now;
}

void EndGame::withdraw() {
    joined_.assign(joined_.size(), false);
    for (const GroupStatus& status : statuses_) {
        if (status.group == mine_.group || status.state == GroupState::absent) continue;
        send(status.group, EndGameKind::withdrawn);
    }
}

void EndGame::decide() {
    for (GroupStatus& status : statuses_) {
        if (!joined_[static_cast<std::size_t>(status.group)]) {
            status = GroupStatus::of(status.group, GroupState::absent);
        }
    }
    for (const GroupStatus& status : statuses_) {
        if (status.group == mine_.group) continue;
        if (status.state == GroupState::absent) {
            send(status.group, EndGameKind::closed);
        } else {
            send(status.group, EndGameKind::result, 0, statuses_);
        }
    }
    decision_ = {true, statuses_};
    phase_ = Phase::decided;
}

void EndGame::stay_alone() {
    decision_.agreed = false;
    for (const GroupStatus& status : statuses_) {
        decision_.groups.push_back(status.group == mine_.group
                                       ? mine_
                                       : GroupStatus::of(status.group, GroupState::absent));
    }
    phase_ = Phase::decided;
}

void EndGame::send(int to_group, EndGameKind kind, double seconds_left,
                   std::vector<GroupStatus> groups) {
    outgoing_.push_back({to_group, {kind, mine_.group, seconds_left, std::move(groups)}});
}

}  // namespace hpcai::comm
