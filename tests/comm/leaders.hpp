// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/membership_agreement.hpp>

namespace hpcai::comm {

inline constexpr MembershipAgreementDeadlines kDeadlines{.status_seconds = 100,
                                                         .stopped_seconds = 20,
                                                         .reply_seconds = 5,
                                                         .notice_seconds = 40,
                                                         .longest_seconds = 2500};

/// Leaders with mailboxes and a clock that advances in seconds. A leader that has not arrived reads
/// no messages yet; a dead leader never does.
class Leaders {
public:
    explicit Leaders(int groups) : mailboxes_(static_cast<std::size_t>(groups)) {}

    void arrive_at(int group, double seconds, GroupState state = GroupState::completed) {
        arrivals_[group] = {seconds, GroupStatus::of(group, state)};
    }
    void stop_at(int group, double seconds) {
        arrivals_[group] = {seconds, GroupStatus::of(group, GroupState::failed, ExitCode::stopped)};
    }
    void die_at(int group, double seconds) { deaths_[group] = seconds; }
    /// The leader dies, and another rank of its group notifies all leaders.
    void lose_at(int group, double seconds) {
        die_at(group, seconds);
        losses_[group] = seconds;
    }

    /// Returns the time at which the last living leader has decided.
    double run() {
        for (now_ = 0; now_ < 3000; ++now_) {
            for (const auto& [group, seconds] : losses_) {
                if (now_ == seconds) announce_loss(group);
            }
            // Several passes in one second model messages that are faster than deadlines.
            for (int pass = 0; pass < 6; ++pass) step_all();
            if (all_decided()) return now_;
        }
        ADD_FAILURE() << "a leader never decided";
        return now_;
    }

    const Membership& decision(int group) const { return agreements_.at(group).decision(); }

private:
    struct Arrival {
        double seconds;
        GroupStatus status;
    };

    bool dead(int group) const { return deaths_.contains(group) && now_ >= deaths_.at(group); }

    void announce_loss(int group) {
        const GroupStatus status =
            GroupStatus::of(group, GroupState::lost, ExitCode::watchdog, "rank 0 has died");
        for (std::size_t other = 0; other < mailboxes_.size(); ++other) {
            mailboxes_[other].push_back(
                AgreementMessage{MembershipAgreementKind::status, group, 0, {status}}.to_bytes());
        }
    }

    void step_all() {
        for (const auto& [group, arrival] : arrivals_) {
            if (now_ < arrival.seconds || dead(group)) continue;
            if (!agreements_.contains(group)) {
                agreements_.try_emplace(group, arrival.status, static_cast<int>(mailboxes_.size()),
                                        kDeadlines, now_);
            }
            step(group, agreements_.at(group));
        }
    }

    void step(int group, MembershipAgreement& agreement) {
        auto& mailbox = mailboxes_[static_cast<std::size_t>(group)];
        deliver(agreement);
        while (!mailbox.empty()) {
            const AgreementMessage message = AgreementMessage::from_bytes(mailbox.front());
            mailbox.pop_front();
            agreement.receive(message, now_);
        }
        agreement.advance(now_);
        deliver(agreement);
    }

    void deliver(MembershipAgreement& agreement) {
        for (const AddressedMessage& sent : agreement.take_outgoing()) {
            mailboxes_.at(static_cast<std::size_t>(sent.to_group))
                .push_back(sent.message.to_bytes());
        }
    }

    bool all_decided() const {
        for (const auto& [group, arrival] : arrivals_) {
            if (dead(group)) continue;
            if (!agreements_.contains(group) || !agreements_.at(group).decided()) return false;
        }
        return true;
    }

    std::vector<std::deque<std::vector<std::byte>>> mailboxes_;
    std::map<int, Arrival> arrivals_;
    std::map<int, double> deaths_;
    std::map<int, double> losses_;
    std::map<int, MembershipAgreement> agreements_;
    double now_ = 0;
};

/// Expects that all voting leaders have one list, for any order of arrival and any lost leader.
inline void expect_one_list_where_one_goes(void (Leaders::*goes_at)(int, double)) {
    constexpr std::array kTimes{0, 99, 101, 205};
    for (std::size_t trial = 0; trial < 2048; ++trial) {
        Leaders leaders(4);
        for (int group = 0; group < 4; ++group) {
            leaders.arrive_at(group, kTimes[(trial >> (2 * group)) % kTimes.size()]);
        }
        const int victim = static_cast<int>(trial / 256 % 4);
        (leaders.*goes_at)(victim, trial / 1024 == 0 ? 100 : 206);
        leaders.run();
        std::optional<std::vector<int>> list;
        for (int group = 0; group < 4; ++group) {
            if (group == victim || !leaders.decision(group).votes(group)) continue;
            if (!list) list = leaders.decision(group).voters();
            ASSERT_EQ(leaders.decision(group).voters(), *list) << "trial " << trial;
        }
    }
}

}  // namespace hpcai::comm
