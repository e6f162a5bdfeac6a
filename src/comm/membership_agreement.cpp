// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <hpcai/comm/membership_agreement.hpp>

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

GroupStatus Membership::status(int group) const {
    const auto known_status = std::ranges::find(known, group, &GroupStatus::group);
    if (known_status != known.end()) return *known_status;
    if (!agreed) return GroupStatus::of(group, GroupState::absent);
    const auto found = std::ranges::lower_bound(*unfinished, group, {}, &UnfinishedGroup::group);
    if (found == unfinished->end() || found->group != group) {
        return GroupStatus::of(group, GroupState::completed);
    }
    return GroupStatus::of(group, found->state, found->exit_code);
}

std::vector<GroupStatus> Membership::statuses() const {
    std::vector<GroupStatus> all;
    for (int group = 0; group < groups; ++group) all.push_back(status(group));
    return all;
}

std::vector<int> Membership::voters() const {
    std::vector<int> found;
    for (int group = 0; group < groups; ++group) {
        if (votes(group)) found.push_back(group);
    }
    return found;
}

bool Membership::has_absent_group() const {
    return !agreed ||
           std::ranges::count(*unfinished, GroupState::absent, &UnfinishedGroup::state) > 0;
}

bool Membership::has_group_with_code(ExitCode code) const {
    return agreed && std::ranges::count(*unfinished, code, &UnfinishedGroup::exit_code) > 0;
}

int Membership::writer() const {
    if (!agreed) return -1;
    for (int group = 0; group < groups; ++group) {
        if (votes(group)) return group;
    }
    const auto failed = std::ranges::find(*unfinished, GroupState::failed, &UnfinishedGroup::state);
    return failed == unfinished->end() ? -1 : failed->group;
}

namespace {

constexpr int kMaxFollowed = 4;  // collectors that a leader follows before it collects itself

struct MessageHeader {
    MembershipAgreementKind kind;
    std::int32_t from_group;
    double seconds;
    std::uint32_t statuses;
    std::uint32_t unfinished;
    std::uint32_t forward_to;
};
static_assert(std::is_trivially_copyable_v<MessageHeader>);
static_assert(std::is_trivially_copyable_v<GroupStatus>);
static_assert(std::is_trivially_copyable_v<UnfinishedGroup>);

}  // namespace

std::vector<std::byte> AgreementMessage::to_bytes() const {
    std::span<const UnfinishedGroup> groups;
    if (unfinished) groups = *unfinished;
    const auto count = [](const auto& list) { return static_cast<std::uint32_t>(list.size()); };
    const MessageHeader header{kind,          from_group,       seconds, count(statuses),
                               count(groups), count(forward_to)};
    std::vector<std::byte> bytes;
    for (const auto part :
         {std::as_bytes(std::span(&header, 1)), std::as_bytes(std::span(statuses)),
          std::as_bytes(groups), std::as_bytes(std::span(forward_to))}) {
        bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
}

AgreementMessage AgreementMessage::from_bytes(std::span<const std::byte> bytes) {
    MessageHeader header{};
    ensure(bytes.size() >= sizeof(header),
           "membership agreement: a message of {} bytes is too short", bytes.size());
    std::memcpy(&header, bytes.data(), sizeof(header));
    std::span<const std::byte> rest = bytes.subspan(sizeof(header));
    ensure(rest.size() == header.statuses * sizeof(GroupStatus) +
                              header.unfinished * sizeof(UnfinishedGroup) +
                              header.forward_to * sizeof(int),
           "membership agreement: {} payload bytes do not match {} statuses, {} unfinished groups "
           "and {} receivers",
           rest.size(), header.statuses, header.unfinished, header.forward_to);
    AgreementMessage message{header.kind, header.from_group, header.seconds};
    message.statuses.resize(header.statuses);
    message.forward_to.resize(header.forward_to);
    std::vector<UnfinishedGroup> groups(header.unfinished);
    for (const auto part : {std::as_writable_bytes(std::span(message.statuses)),
                            std::as_writable_bytes(std::span(groups)),
                            std::as_writable_bytes(std::span(message.forward_to))}) {
        std::ranges::copy(rest.first(part.size()), part.begin());
        rest = rest.subspan(part.size());
    }
    message.unfinished = std::make_shared<const std::vector<UnfinishedGroup>>(std::move(groups));
    return message;
}

MembershipAgreement::MembershipAgreement(const GroupStatus& mine, int groups,
                                         const MembershipAgreementDeadlines& deadlines, double now)
    : mine_(mine), groups_(groups), deadlines_(deadlines) {
    ensure(mine.group >= 0 && mine.group < groups,
           "membership agreement: there is no group {} among {} groups", mine.group, groups);
    reports_[mine.group] = mine;
    if (mine.state == GroupState::completed) completed_deadline_ = now + deadlines.status_seconds;
    if (mine.has_stopped()) stopped_deadline_ = now + deadlines.stopped_seconds;
    decision_.groups = groups;
    follow(0, now);
}

void MembershipAgreement::receive(const AgreementMessage& message, double now) {
    ensure(message.from_group >= 0 && message.from_group < groups_,
           "membership agreement: message from group {} of {} groups", message.from_group, groups_);
    send_in_tree(message, message.forward_to);
    switch (message.kind) {
        case MembershipAgreementKind::status:
            return receive_status(message, now);
        case MembershipAgreementKind::query:
            if (phase_ != Phase::collecting) return;
            return send(message.from_group, MembershipAgreementKind::notice,
                        deadlines_.notice_seconds);
        case MembershipAgreementKind::notice:
            return receive_notice(message.from_group, message.seconds, now);
        case MembershipAgreementKind::proposal:
            return receive_proposal(message.from_group, now);
        case MembershipAgreementKind::joined:
        case MembershipAgreementKind::declined:
        case MembershipAgreementKind::received:
            return receive_reply(message.from_group, message.kind, now);
        case MembershipAgreementKind::withdrawn:
            return receive_withdrawal(message.from_group, now);
        case MembershipAgreementKind::result:
        case MembershipAgreementKind::closed:
            return receive_decision(message);
    }
}

void MembershipAgreement::advance(double now) {
    if (phase_ == Phase::decided) return;
    if (phase_ == Phase::collecting) return continue_collecting(now);
    if (now >= phase_end_) {
        if (phase_ == Phase::proposing) return decide(now);
        const bool has_next = phase_ == Phase::following && collector_ < mine_.group;
        if (has_next) return follow_next(now);
        if (phase_ != Phase::announcing) decide_alone();
        phase_ = Phase::decided;
        return;
    }
    if (phase_ == Phase::joined || now < reminder_) return;
    reminder_ = phase_end_;
    if (phase_ == Phase::following) return send(collector_, MembershipAgreementKind::query);
    for (const int group : missing_replies_) {
        phase_ == Phase::proposing ? send(group, MembershipAgreementKind::proposal)
                                   : send_result({&group, 1});
    }
}

void MembershipAgreement::follow(int collector, double now) {
    if (collector == mine_.group) return collect(now);
    phase_ = Phase::following;
    collector_ = collector;
    phase_end_ = now + deadlines_.status_seconds;
    if (mine_.has_stopped()) {  // the rest of stopped_seconds, but at least time for two replies
        phase_end_ = std::max(stopped_deadline_.value_or(now), now + 2 * deadlines_.reply_seconds);
    }
    reminder_ = (now + phase_end_) / 2;
    send(collector, MembershipAgreementKind::status, phase_end_ - now);
    outgoing_.back().message.statuses = {mine_};
}

void MembershipAgreement::follow_next(double now) {
    int next = collector_ + 1;
    while (next < mine_.group && is_lost(next)) ++next;
    follow(next < kMaxFollowed ? next : mine_.group, now);
}

bool MembershipAgreement::is_lost(int group) const {
    const auto report = reports_.find(group);
    return report != reports_.end() && report->second.state == GroupState::lost;
}

void MembershipAgreement::collect(double now) {
    phase_ = Phase::collecting;
    collector_ = mine_.group;
    // Leaders that waited for the same silent collectors still have to report.
    phase_end_ = now + deadlines_.reply_seconds;
    if (mine_.group == 0) return;  // all leaders first follow group 0
    for (int group = 0; group < groups_; ++group) {
        if (group == mine_.group) continue;
        send(group, MembershipAgreementKind::notice, deadlines_.notice_seconds);
    }
}

void MembershipAgreement::receive_status(const AgreementMessage& message, double now) {
    const GroupStatus& status = message.statuses.at(0);
    ensure(status.group == message.from_group,
           "membership agreement: group {} sent the status of group {}", message.from_group,
           status.group);
    if (status.state == GroupState::lost) return receive_loss(status, now);
    reports_[status.group] = status;
    if (status.state == GroupState::completed) {
        completed_deadline_ = std::max(completed_deadline_.value_or(0), now + message.seconds);
    }
    if (status.has_stopped()) {
        stopped_deadline_ = std::max(stopped_deadline_.value_or(0), now + message.seconds);
    }
    if (phase_ != Phase::proposing) return;
    send(status.group, MembershipAgreementKind::proposal);
    missing_replies_.insert(status.group);
}

/// Records the loss of a leader, unless the lost leader has reported earlier.
void MembershipAgreement::receive_loss(const GroupStatus& status, double now) {
    reports_.try_emplace(status.group, status);
    const bool is_followed = phase_ == Phase::following && status.group == collector_;
    if (is_followed && collector_ < mine_.group) follow_next(now);
}

void MembershipAgreement::receive_notice(int collector, double seconds, double now) {
    if (phase_ != Phase::following && phase_ != Phase::collecting) return;
    // The sender timed out as a collector; this leader already follows a later one.
    if (collector < collector_) return;
    if (collector > collector_) follow(collector, now);
    phase_end_ = now + seconds + 2 * deadlines_.reply_seconds;
    reminder_ = now + seconds / 2;
}

void MembershipAgreement::receive_proposal(int collector, double now) {
    const bool may_join = phase_ == Phase::following || phase_ == Phase::joined;
    if (!may_join || collector != collector_) {
        return send(collector, MembershipAgreementKind::declined);
    }
    // A repeated proposal must not extend the wait.
    if (phase_ == Phase::following) phase_end_ = now + 2 * deadlines_.reply_seconds;
    phase_ = Phase::joined;
    send(collector, MembershipAgreementKind::joined);
}

void MembershipAgreement::receive_reply(int from_group, MembershipAgreementKind kind, double now) {
    const bool is_to_result = kind == MembershipAgreementKind::received;
    if (phase_ != (is_to_result ? Phase::announcing : Phase::proposing)) return;
    if (kind == MembershipAgreementKind::declined) {
        withdraw();  // a later collector is active; two decisions would make two results
        return follow(from_group, now);
    }
    if (missing_replies_.erase(from_group) != 0 && !is_to_result) joined_.insert(from_group);
    if (missing_replies_.empty()) phase_end_ = now;
}

void MembershipAgreement::receive_withdrawal(int collector, double now) {
    const bool is_follower = phase_ == Phase::following || phase_ == Phase::joined;
    if (is_follower && collector == collector_ && collector < mine_.group) follow_next(now);
}

void MembershipAgreement::receive_decision(const AgreementMessage& message) {
    if (phase_ == Phase::announcing || decided()) return;
    const bool from_own_collector = message.from_group == collector_;
    if (message.kind == MembershipAgreementKind::result && phase_ == Phase::joined &&
        from_own_collector) {
        decision_ = {true, groups_, message.unfinished, message.statuses};
        phase_ = Phase::decided;
        send(collector_, MembershipAgreementKind::received);
    } else if (phase_ != Phase::joined || from_own_collector) {
        if (phase_ == Phase::proposing) withdraw();
        decide_alone();
    }
}

void MembershipAgreement::continue_collecting(double now) {
    // Until a group completes or stops, all groups that have not reported may still be training.
    const std::optional<double> until = stopped_deadline_ ? stopped_deadline_ : completed_deadline_;
    const double end =
        until ? std::max(*until, phase_end_) : phase_end_ + deadlines_.longest_seconds;
    if (std::cmp_equal(reports_.size(), groups_) || now >= end) propose(now);
}

void MembershipAgreement::propose(double now) {
    phase_ = Phase::proposing;
    joined_ = {mine_.group};
    const std::vector<int> peers = reported_peers();
    send_in_tree({MembershipAgreementKind::proposal, mine_.group}, peers);
    wait_for_replies(peers, now);
}

void MembershipAgreement::wait_for_replies(std::span<const int> groups, double now) {
    missing_replies_ = {groups.begin(), groups.end()};
    phase_end_ = groups.empty() ? now : now + deadlines_.reply_seconds;
    reminder_ = (now + phase_end_) / 2;
}

void MembershipAgreement::withdraw() {
    joined_.clear();
    missing_replies_.clear();
    for (const int group : reported_peers()) send(group, MembershipAgreementKind::withdrawn);
}

void MembershipAgreement::decide(double now) {
    std::vector<UnfinishedGroup> found;
    for (int group = 0; group < groups_; ++group) {
        if (!joined_.contains(group) && !is_lost(group)) {
            found.push_back({group, GroupState::absent, ExitCode::ok});
        } else if (const GroupStatus& status = reports_.at(group);
                   status.state != GroupState::completed) {
            found.push_back({group, status.state, status.exit_code});
            decision_.known.push_back(status);
        }
    }
    decision_.agreed = true;
    decision_.unfinished = std::make_shared<const std::vector<UnfinishedGroup>>(std::move(found));
    std::vector<int> receivers;
    for (int group = 0; group < groups_; ++group) {
        if (group == mine_.group) continue;
        if (joined_.contains(group)) {
            receivers.push_back(group);
        } else {
            send(group, MembershipAgreementKind::closed);
        }
    }
    // Voters come first, so that mostly voters forward the result: the vote needs them anyway.
    std::ranges::stable_partition(
        receivers, [&](int group) { return reports_.at(group).state == GroupState::completed; });
    send_result(receivers);
    wait_for_replies(receivers, now);
    phase_ = receivers.empty() ? Phase::decided : Phase::announcing;
}

void MembershipAgreement::send_result(std::span<const int> groups) {
    send_in_tree({.kind = MembershipAgreementKind::result,
                  .from_group = mine_.group,
                  .unfinished = decision_.unfinished},
                 groups);
    if (!groups.empty() && groups.front() == decision_.writer()) {
        outgoing_.back().message.statuses = decision_.known;
    }
}

/// Sends `message` without statuses to at most log2(n) + 1 of these n groups. Each receiver
/// forwards it to the groups in its forward_to. The last message goes to the first of `groups`.
void MembershipAgreement::send_in_tree(AgreementMessage message, std::span<const int> groups) {
    message.statuses.clear();
    while (!groups.empty()) {
        const auto half = groups.last((groups.size() + 1) / 2);
        message.forward_to.assign(half.begin() + 1, half.end());
        outgoing_.push_back({half.front(), message});
        groups = groups.first(groups.size() - half.size());
    }
}

void MembershipAgreement::decide_alone() {
    decision_.agreed = false;
    decision_.known = {mine_};
    phase_ = Phase::decided;
}

std::vector<int> MembershipAgreement::reported_peers() const {
    std::vector<int> found;
    for (const auto& [group, status] : reports_) {
        if (group != mine_.group && status.state != GroupState::lost) found.push_back(group);
    }
    return found;
}

void MembershipAgreement::send(int to_group, MembershipAgreementKind kind, double seconds) {
    outgoing_.push_back({to_group, {kind, mine_.group, seconds}});
}

}  // namespace hpcai::comm
