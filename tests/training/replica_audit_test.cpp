// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <hpcai/training/replica_audit.hpp>

#include "networks.hpp"

namespace hpcai::training {
namespace {

using Ranks = std::vector<int>;
using Parts = std::vector<std::string>;

constexpr ReplicaHashes kRight{11, 12, 13};
constexpr ReplicaHashes kOtherMomentum{11, 22, 13};
constexpr ReplicaHashes kOther{31, 32, 13};

struct AuditCase {
    std::vector<ReplicaHashes> held;  // by group rank
    Ranks named;
    Parts parts;
};

TEST(ReplicaAudit, NamesTheMinorityAndEveryRankWhereNoMajorityAgrees) {
    const Parts momentum{"optimizer state"};
    const Parts both{"parameters", "optimizer state"};
    const std::vector<AuditCase> cases{
        {{kRight, kOtherMomentum}, {0, 1}, momentum},
        {{kRight, kRight, kOther}, {2}, both},
        {{kOther, kRight, kRight}, {0}, both},
        {{kRight, kOtherMomentum, kRight, kRight}, {1}, momentum},
        {{kRight, kRight, kOther, kOther}, {0, 1, 2, 3}, both},
        {{kRight, kRight, kOther, kOtherMomentum}, {0, 1, 2, 3}, both},
        {{kRight, kOther, kRight, kOtherMomentum, kRight}, {1, 3}, both},
        {{kRight, kOther, kOtherMomentum}, {0, 1, 2}, both},
        {{kRight, {11, 12, 0}}, {0, 1}, {"statistics"}},
        {{{0, 0, 1}, {0, 1, 0}, {1, 0, 0}},
         {0, 1, 2},
         {"parameters", "optimizer state", "statistics"}},
    };
    for (const AuditCase& one : cases) {
        const auto found = find_divergence(one.held, std::vector<int>(one.held.size(), 0), 7);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->group_ranks, one.named);
        EXPECT_EQ(found->parts, one.parts);
        EXPECT_EQ(found->ranks, static_cast<int>(one.held.size()));
        EXPECT_EQ(found->step, 7);
    }
}

TEST(ReplicaAudit, FindsNothingWhereAllHoldTheSame) {
    for (const std::size_t ranks : {1, 2, 3, 8}) {
        const std::vector<ReplicaHashes> all(ranks, kOther);
        EXPECT_FALSE(find_divergence(all, std::vector<int>(ranks, 0), 1).has_value()) << ranks;
    }
}

TEST(ReplicaAudit, ComparesTheRanksOfEachStageWithOneAnother) {
    const std::vector<ReplicaHashes> right{kRight, kRight, kRight, kOther, kOther, kOther};
    const std::vector<int> stages{0, 0, 0, 1, 1, 1};
    EXPECT_FALSE(find_divergence(right, stages, 7).has_value());
    std::vector<ReplicaHashes> wrong = right;
    wrong[4] = kOtherMomentum;
    const auto one = find_divergence(wrong, stages, 7);
    ASSERT_TRUE(one.has_value());
    EXPECT_EQ(one->group_ranks, Ranks{4});
    EXPECT_EQ(one->ranks, 3);
    wrong[0].statistics = 1;
    const auto two = find_divergence(wrong, stages, 7);
    EXPECT_EQ(two->group_ranks, (Ranks{0, 4}));
    EXPECT_EQ(two->ranks, 6);
    EXPECT_EQ(two->parts, (Parts{"parameters", "optimizer state", "statistics"}));
}

TEST(ReplicaAudit, ComparesRanksOfAShardThatAreNotConsecutive) {
    const std::vector<ReplicaHashes> right{kRight, kOther, kRight, kOther, kRight, kOther};
    const std::vector<int> parts{0, 1, 0, 1, 0, 1};
    EXPECT_FALSE(find_divergence(right, parts, 7).has_value());
    std::vector<ReplicaHashes> wrong = right;
    wrong[3] = kRight;
    wrong[4] = kOther;
    const auto found = find_divergence(wrong, parts, 7);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->group_ranks, (Ranks{3, 4}));
    EXPECT_EQ(found->ranks, 6);
}

TEST(ReplicaAudit, ReportsWhatDiffersAfterWhichStep) {
    const std::vector<ReplicaHashes> held{kRight, kRight, kOther, kRight};
    const ReplicaDivergence error(*find_divergence(held, std::vector<int>(4, 0), 12));
    EXPECT_STREQ(error.what(),
                 "replica audit after step 12: different parameters and optimizer state among 4 "
                 "ranks; diverged group ranks: 2");
    EXPECT_EQ(error.code(), ExitCode::invalid);
}

TEST(ReplicaAudit, OfOneRankHasNothingToCompare) {
    const auto self = comm::make_self_communicator();
    config::Config config = small_config(16, 1);
    config.run.audit_steps = 1;
    SmallModel model(config, 3, *self, small_graph(16));
    ToySource source(16, 3);
    model.trainer->train_epoch(0, source, [](const StepReport&) {});
    model.trainer->average_statistics();
    model.trainer->audit_final_state();
    EXPECT_EQ(model.trainer->audit().passed(), 0);
}

}  // namespace
}  // namespace hpcai::training
