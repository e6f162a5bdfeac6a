// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/ops/box_math.hpp>
#include <hpcai/reference/naive_random.hpp>

#include "device/cpu/loops/loops.hpp"
#include "device/cpu/suppression.hpp"

namespace hpcai::device::cpu {
namespace {

struct Table {
    const char* name;
    const SimdKernels& (*loops)();
    bool present;
};

std::vector<Table> tables() {
    __builtin_cpu_init();
    return {{"baseline", baseline::table, true},
            {"avx2", avx2::table, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
            {"avx512", avx512::table,
             __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")}};
}

ops::Box random_box(naive::Random& random) {
    const naive::Tensor numbers = random.normal({4}, 50, 10);
    const auto number = [&](std::int64_t i) { return static_cast<float>(numbers[i]); };
    return {number(0), number(1), number(0) + 0.5f * number(2), number(1) + 0.5f * number(3)};
}

/// Disjoint boxes, except for one.
struct Crowd {
    std::array<std::array<float, 21>, 5> columns{};

    explicit Crowd(std::size_t place, const ops::Box& box) {
        columns[0].fill(-10);
        columns[1].fill(-10);
        columns[2].fill(-9);
        columns[3].fill(-9);
        columns[4].fill(1);
        const std::array<float, 5> numbers{box.x1, box.y1, box.x2, box.y2, ops::area_of(box)};
        for (std::size_t i = 0; i < 5; ++i) columns[i][place] = numbers[i];
    }
    BoxColumns view() {
        return {columns[0].data(), columns[1].data(), columns[2].data(), columns[3].data(),
                columns[4].data()};
    }
};

TEST(Overlaps, AreThoseOfBoxMathToTheBit) {
    naive::Random random(tensor::DType::f32, 70);
    int apart = 0;
    for (int repeat = 0; repeat < 400; ++repeat) {
        const ops::Box a = random_box(random), b = random_box(random);
        const float iou = ops::iou_of(a, b);
        Crowd crowd(static_cast<std::size_t>(repeat % 21), a);
        for (const Table& table : tables()) {
            if (!table.present) continue;
            const auto overlaps = [&](float limit) {
                const ReferenceBox box{b.x1, b.y1, b.x2, b.y2, ops::area_of(b), limit};
                return table.loops().overlaps(crowd.view(), 21, box);
            };
            EXPECT_FALSE(overlaps(iou)) << table.name << ", " << repeat;
            apart += iou == 0 ? 1 : 0;
            if (iou > 0) {
                EXPECT_TRUE(overlaps(std::nextafter(iou, 0.0f))) << table.name << ", " << repeat;
            }
        }
    }
    EXPECT_LT(apart, 400);
}

TEST(Overlaps, OfNoBoxesAreNone) {
    for (const Table& table : tables()) {
        if (!table.present) continue;
        EXPECT_FALSE(table.loops().overlaps({}, 0, {0, 0, 1, 1, 1, 0}));
    }
}

TEST(RankKeys, PutHigherScoresFirstThenLowerNumbersAndNaNsLast) {
    const std::vector<float> falling{HUGE_VALF, 3.5f, 1e-40f, 0.0f, -1e-40f, -2, -HUGE_VALF};
    for (std::size_t i = 1; i < falling.size(); ++i) {
        EXPECT_LT(rank_key(falling[i - 1], 9), rank_key(falling[i], 3)) << falling[i];
        EXPECT_EQ(score_of(rank_key(falling[i], 3)), falling[i]);
    }
    EXPECT_LT(rank_key(0.0f, 1), rank_key(-0.0f, 2));
    EXPECT_LT(rank_key(-0.0f, 1), rank_key(0.0f, 2));
    EXPECT_LT(rank_key(-HUGE_VALF, 9), rank_key(NAN, 1));
    EXPECT_LT(rank_key(-HUGE_VALF, 9), rank_key(-NAN, 1));
    EXPECT_TRUE(std::isnan(score_of(rank_key(-NAN, 1))));
    EXPECT_EQ(number_of(rank_key(0.5f, 220967)), 220967);
}

TEST(RoundedDown, LeavesTheComparisonOfFp32NumbersAsItWas) {
    for (const double limit : {0.1, 0.3, 0.5, 0.7, 0.9}) {
        const float rounded = ops::rounded_down(limit);
        EXPECT_LE(static_cast<double>(rounded), limit);
        EXPECT_GT(static_cast<double>(std::nextafter(rounded, 1.0f)), limit);
    }
}

}  // namespace
}  // namespace hpcai::device::cpu
