// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::graph {
namespace {

bool live_together(const Lifetime& a, const Lifetime& b) {
    return a.first <= b.last && b.first <= a.last;
}

void expect_disjoint(const std::vector<Lifetime>& lifetimes, const MemoryPlan& plan) {
    ASSERT_EQ(plan.offsets.size(), lifetimes.size());
    for (std::size_t a = 0; a < lifetimes.size(); ++a) {
        EXPECT_EQ(plan.offsets[a] % 64, 0u);
        EXPECT_LE(plan.offsets[a] + lifetimes[a].bytes, plan.total_bytes);
        for (std::size_t b = 0; b < a; ++b) {
            if (!live_together(lifetimes[a], lifetimes[b])) continue;
            ASSERT_TRUE(plan.offsets[a] + lifetimes[a].bytes <= plan.offsets[b] ||
                        plan.offsets[b] + lifetimes[b].bytes <= plan.offsets[a])
                << "tensors " << a << " and " << b;
        }
    }
}

/// No plan can be smaller than what is alive at one step.
std::size_t most_bytes_at_once(const std::vector<Lifetime>& lifetimes, int steps) {
    std::size_t most = 0;
    for (int step = 0; step < steps; ++step) {
        std::size_t now = 0;
        for (const Lifetime& life : lifetimes) {
            if (life.first <= step && step <= life.last) now += life.bytes;
        }
        most = std::max(most, now);
    }
    return most;
}

TEST(MemoryPlan, OfNothingIsEmpty) {
    EXPECT_EQ(plan_memory({}).total_bytes, 0u);
}

TEST(MemoryPlan, GivesTensorsOfDifferentStepsTheSamePlace) {
    const MemoryPlan plan = plan_memory({{128, 0, 1}, {128, 2, 3}, {64, 4, 4}});
    EXPECT_EQ(plan.offsets, (std::vector<std::size_t>{0, 0, 0}));
    EXPECT_EQ(plan.total_bytes, 128u);
}

TEST(MemoryPlan, KeepsTensorsOfOneStepDisjoint) {
    const MemoryPlan plan = plan_memory({{100, 0, 2}, {100, 2, 3}});
    EXPECT_EQ(plan.total_bytes, 256u);
}

TEST(MemoryPlan, NeedsTwoPlacesForAChain) {
    std::vector<Lifetime> chain;
    for (int step = 0; step < 50; ++step) chain.push_back({640, step, step + 1});
    EXPECT_EQ(plan_memory(chain).total_bytes, 2 * 640u);
}

TEST(MemoryPlan, PutsASmallTensorIntoAGapBetweenLargeOnes) {
    // At step 2 the memory of the second tensor, between two others, is free.
    const std::vector<Lifetime> lifetimes{{512, 0, 9}, {256, 0, 1}, {256, 0, 9}, {128, 2, 9}};
    const MemoryPlan plan = plan_memory(lifetimes);
    expect_disjoint(lifetimes, plan);
    EXPECT_EQ(plan.total_bytes, 1024u);
}

TEST(MemoryPlan, NeverOverlapsLiveTensorsAndReusesMemory) {
    constexpr int kSteps = 60;
    for (std::uint32_t trial = 0; trial < 200; ++trial) {
        CounterStream random(7, RandomPurpose::test, trial);
        std::vector<Lifetime> lifetimes(1 + random.below(80));
        std::size_t sum = 0;
        for (Lifetime& life : lifetimes) {
            life.bytes = 64 * random.below(100) + (trial % 2 == 0 ? random.below(64) : 0);
            life.first = static_cast<int>(random.below(kSteps));
            const auto length = random.below(trial % 3 == 0 ? 5 : kSteps);
            life.last = std::min(life.first + static_cast<int>(length), kSteps - 1);
            sum += (life.bytes + 63) / 64 * 64;
        }
        const MemoryPlan plan = plan_memory(lifetimes);
        expect_disjoint(lifetimes, plan);
        EXPECT_GE(plan.total_bytes, most_bytes_at_once(lifetimes, kSteps));
        EXPECT_LE(plan.total_bytes, sum);
        EXPECT_LE(plan.total_bytes, 3 * most_bytes_at_once(lifetimes, kSteps) / 2 + 64 * 80);
    }
}

}  // namespace
}  // namespace hpcai::graph
