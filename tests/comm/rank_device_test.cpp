// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/comm/rank_device.hpp>

namespace hpcai::comm {
namespace {

constexpr int kVersion = 22809;

TEST(RankDevice, RanksWithAGpuEachHaveNoObstacle) {
    const std::vector<RankDevice> ranks{
        {"a", "GPU-0", kVersion}, {"a", "GPU-1", kVersion}, {"b", "GPU-2", kVersion}};
    EXPECT_EQ(obstacle_to_nccl(ranks), std::nullopt);
}

TEST(RankDevice, TwoRanksThatShareAGpuAreNamed) {
    const std::vector<RankDevice> ranks{{"a", "GPU-0", kVersion},
                                        {"a", "GPU-1", kVersion},
                                        {"a", "GPU-2", kVersion},
                                        {"a", "GPU-1", kVersion}};
    EXPECT_EQ(obstacle_to_nccl(ranks),
              "ranks 1 and 3 share GPU-1 on a, but NCCL needs a GPU for each rank");
}

// Two containers on one machine may have different host names.
TEST(RankDevice, OneGpuUnderTwoHostNamesIsShared) {
    const std::vector<RankDevice> ranks{{"a", "GPU-0", kVersion}, {"b", "GPU-0", kVersion}};
    EXPECT_NE(obstacle_to_nccl(ranks), std::nullopt);
}

TEST(RankDevice, ARankWithoutNcclOrWithAnotherVersionIsNamed) {
    std::vector<RankDevice> without{{"a", "GPU-0", kVersion}, {"b", "GPU-1", 0}};
    EXPECT_EQ(obstacle_to_nccl(without), "rank 1 on b has no NCCL and rank 0 on a has NCCL 2.28.9");
    without[0].nccl_version = 0;
    EXPECT_EQ(obstacle_to_nccl(without), "rank 0 of the group on a has no NCCL");
    const std::vector<RankDevice> other{{"a", "GPU-0", kVersion}, {"b", "GPU-1", 22703}};
    EXPECT_EQ(obstacle_to_nccl(other),
              "rank 1 on b has NCCL 2.27.3 and rank 0 on a has NCCL 2.28.9");
    const std::vector<RankDevice> nobody{{"a", "GPU-0", 0}, {"b", "GPU-1", 0}};
    EXPECT_NE(obstacle_to_nccl(nobody), std::nullopt);
}

TEST(RankDevice, TextsOfAnyLengthAreGathered) {
    const auto self = make_self_communicator();
    const auto all =
        gather_rank_devices(*self, {std::string(300, 'h'), std::string(300, 'u'), kVersion});
    ASSERT_EQ(all.size(), 1u);
    EXPECT_EQ(all[0].host, std::string(300, 'h'));
    EXPECT_EQ(all[0].uuid, std::string(300, 'u'));
    EXPECT_EQ(all[0].nccl_version, kVersion);
}

}  // namespace
}  // namespace hpcai::comm
