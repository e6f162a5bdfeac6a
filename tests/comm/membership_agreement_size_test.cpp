// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/comm/membership_agreement.hpp>

/// Scaling with the number of groups: time, memory and messages.
namespace hpcai::comm {
namespace {

/// Leaders of all groups of a machine, which arrive together. Messages are delivered directly.
class AllLeaders {
public:
    explicit AllLeaders(int groups) {
        agreements_.reserve(static_cast<std::size_t>(groups));
        for (int group = 0; group < groups; ++group) {
            const bool failed = group % 3 == 0;
            agreements_.emplace_back(
                GroupStatus::of(group, failed ? GroupState::failed : GroupState::completed), groups,
                MembershipAgreementDeadlines{}, 0);
            take_from(agreements_.back());
        }
    }

    void run() {
        while (!messages_.empty()) {
            for (; !messages_.empty(); messages_.pop_front()) {
                MembershipAgreement& receiver =
                    agreements_[static_cast<std::size_t>(messages_.front().to_group)];
                receiver.receive(messages_.front().message, 0);
                take_from(receiver);
            }
            for (MembershipAgreement& agreement : agreements_) {
                agreement.advance(0);
                take_from(agreement);
            }
        }
    }

    const std::vector<MembershipAgreement>& agreements() const { return agreements_; }
    /// Returns the number of messages that the busiest leader has sent.
    std::size_t most_sent() const { return std::ranges::max(sent_); }

private:
    void take_from(MembershipAgreement& agreement) {
        sent_.resize(agreements_.capacity());
        for (AddressedMessage& sent : agreement.take_outgoing()) {
            messages_.push_back(std::move(sent));
            ++sent_[static_cast<std::size_t>(&agreement - agreements_.data())];
        }
    }

    std::vector<MembershipAgreement> agreements_;
    std::vector<std::size_t> sent_;  // [group]
    std::deque<AddressedMessage> messages_;
};

TEST(MembershipAgreement, AHundredThousandLeadersAgreeInTimeAndMemoryProportionalToTheirNumber) {
    constexpr int kGroups = 100'000;
    AllLeaders leaders(kGroups);
    leaders.run();
    const auto& list = leaders.agreements().front().decision().unfinished;
    for (int group = 0; group < kGroups; ++group) {
        const MembershipAgreement& agreement =
            leaders.agreements()[static_cast<std::size_t>(group)];
        ASSERT_TRUE(agreement.decided()) << group;
        ASSERT_TRUE(agreement.decision().agreed) << group;
        ASSERT_EQ(agreement.decision().unfinished, list) << "one list serves all";
        ASSERT_EQ(agreement.decision().votes(group), group % 3 != 0);
        ASSERT_EQ(agreement.decision().writer(), 1);
    }
    EXPECT_EQ(leaders.agreements()[1].decision().known.size(), list->size())
        << "the writer has the reasons";
    EXPECT_EQ(leaders.agreements()[2].decision().known.size(), 0u);
    EXPECT_EQ(leaders.agreements()[2].decision().voters().size(), kGroups - list->size());
}

TEST(MembershipAgreement, NoLeaderSendsMoreMessagesThanTwoTreesAndAReplyNeed) {
    for (const auto& [groups, levels] : {std::pair{2, 1u}, {8, 3u}, {1000, 10u}, {1024, 10u}}) {
        AllLeaders leaders(groups);
        leaders.run();
        EXPECT_LE(leaders.most_sent(), 2 * levels + 2) << groups << " groups";
    }
}

TEST(AgreementMessage, BytesThatAreNoMessageAreRejected) {
    const AgreementMessage message{
        MembershipAgreementKind::result,
        1,
        2.5,
        {GroupStatus::of(0, GroupState::failed, ExitCode::data, "why")},
        std::make_shared<const std::vector<UnfinishedGroup>>(
            std::vector<UnfinishedGroup>{{0, GroupState::failed, ExitCode::data}, {7}}),
        {3, 4, 5}};
    const std::vector<std::byte> bytes = message.to_bytes();
    const AgreementMessage back = AgreementMessage::from_bytes(bytes);
    EXPECT_EQ(back.from_group, 1);
    EXPECT_EQ(back.seconds, 2.5);
    ASSERT_EQ(back.statuses.size(), 1u);
    EXPECT_EQ(back.statuses[0].reason_text(), "why");
    EXPECT_EQ(back.statuses[0].exit_code, ExitCode::data);
    ASSERT_EQ(back.unfinished->size(), 2u);
    EXPECT_EQ((*back.unfinished)[0].exit_code, ExitCode::data);
    EXPECT_EQ((*back.unfinished)[1].group, 7);
    EXPECT_EQ(back.forward_to, message.forward_to);
    EXPECT_THROW(AgreementMessage::from_bytes(std::span(bytes).first(bytes.size() - 1)), Error);
    EXPECT_THROW(AgreementMessage::from_bytes(std::span(bytes).first(3)), Error);
}

TEST(GroupStatus, ALongReasonIsTruncated) {
    const GroupStatus status =
        GroupStatus::of(0, GroupState::failed, ExitCode::data, std::string(1000, 'x'));
    EXPECT_EQ(status.reason_text(), std::string(status.reason.size() - 1, 'x'));
}

}  // namespace
}  // namespace hpcai::comm
