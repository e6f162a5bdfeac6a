// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/metrics/score.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

namespace hpcai::metrics {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Flops, AreAllWorkOverTheLongestTime) {
    const std::array groups{GroupWork{100, 10}, GroupWork{140, 20}, GroupWork{60, 5}};
    EXPECT_DOUBLE_EQ(flops(groups, 50).value(), 300 * 50 / 20.0);
    EXPECT_DOUBLE_EQ(samples_per_second(groups).value(), 15);
}

TEST(Flops, OfOneGroupAreItsOwn) {
    const std::array groups{GroupWork{512, 2}};
    // The paper's APC at |B| = 512, 23.0 GFLOPs per sample, in two seconds.
    EXPECT_DOUBLE_EQ(flops(groups, 23'000'000'000).value(), 5.888e12);
}

TEST(Flops, CountTheTimeOfAnUnfinishedGroupButNotItsWork) {
    const std::array lost_late{GroupWork{100, 10}, GroupWork{90, 25, false}};
    EXPECT_DOUBLE_EQ(flops(lost_late, 50).value(), 100 * 50 / 25.0);
    const std::array lost_early{GroupWork{100, 10}, GroupWork{5, 1, false}};
    EXPECT_DOUBLE_EQ(flops(lost_early, 50).value(), 100 * 50 / 10.0);
}

TEST(Flops, DoNotOverflowOnTheLargestRun) {
    // 12,500 models x 90 epochs of ImageNet, 24.6 GFLOPs per sample, in an hour: 3.5e22 FLOPs.
    const std::vector<GroupWork> groups(12'500, GroupWork{90 * 1'281'167, 3600});
    const double work = 12'500.0 * 90 * 1'281'167 * 24'610'397'184.0;
    EXPECT_NEAR(flops(groups, 24'610'397'184).value() / (work / 3600), 1, 1e-12);
}

TEST(Flops, OfNoWorkInSomeTimeAreZero) {
    EXPECT_EQ(flops(std::array{GroupWork{0, 3}}, 50), 0.0);
}

TEST(Flops, AreEmptyIfUndefined) {
    EXPECT_FALSE(flops({}, 50));
    EXPECT_FALSE(flops(std::array{GroupWork{100, 0}}, 50));
    EXPECT_FALSE(flops(std::array{GroupWork{100, -1}}, 50));
    EXPECT_FALSE(flops(std::array{GroupWork{-1, 1}}, 50));
    EXPECT_FALSE(flops(std::array{GroupWork{100, 1}}, -1));
    EXPECT_FALSE(flops(std::array{GroupWork{100, 1}, GroupWork{100, kNan}}, 50));
    EXPECT_FALSE(flops(std::array{GroupWork{100, 1}, GroupWork{100, kInfinity}}, 50));
    EXPECT_FALSE(flops(std::array{GroupWork{100, 1, false}}, 50)) << "no group finished";
    EXPECT_FALSE(flops(std::array{GroupWork{100, std::numeric_limits<double>::denorm_min()}}, 50))
        << "the quotient is not finite";
}

TEST(PenaltyCoefficient, IsThatOfThePaper) {
    EXPECT_NEAR(penalty_coefficient(0.7568, 0.763, 5).value(), 0.96, 0.005);
    EXPECT_NEAR(penalty_coefficient(0.3224, 0.35, 10).value(), 0.44, 0.005);
}

TEST(PenaltyCoefficient, AgreesWithEquation8InDecimalsOf50Digits) {
    // double: qualities and their quotient have an error of 1.1e-16 each, times the exponent, up to
    // 10
    tests::LargestError error("penalty coefficient (eq. 8), relative, fp64", 4e-15);
    const nlohmann::json reference = tests::read_reference_json("metrics_score.json");
    int of_the_paper = 0;
    for (const nlohmann::json& wanted : reference["penalties"]) {
        const double got =
            penalty_coefficient(wanted["achieved"], wanted["target"], wanted["exponent"]).value();
        error.add(std::abs(got / wanted["coefficient"].get<double>() - 1), wanted.dump());
        if (!wanted.contains("paper")) continue;
        EXPECT_EQ(std::round(100 * got) / 100, wanted["paper"].get<double>());
        ++of_the_paper;
    }
    EXPECT_EQ(of_the_paper, 2);
}

TEST(Score, AgreesWithEquations6To8InFractions) {
    // double: products, a quotient and the power of eq. 8, 1.1e-16 each, the power five times
    tests::LargestError flops_error("FLOPS of a run (eq. 6), relative, fp64", 6e-16);
    tests::LargestError images_error("images per second of a run, relative, fp64", 6e-16);
    tests::LargestError vflops_error("VFLOPS of a run (eq. 7), relative, fp64", 2e-15);
    const nlohmann::json reference = tests::read_reference_json("metrics_score.json");
    const nlohmann::json& scores = reference["scores"];
    for (const nlohmann::json& run : scores["runs"]) {
        std::vector<GroupWork> groups;
        for (const nlohmann::json& group : run["groups"]) groups.push_back({group[0], group[1]});
        const auto rate = flops(groups, scores["flops_per_sample"]);
        const auto coefficient =
            penalty_coefficient(scores["achieved"], scores["target"], scores["exponent"]);
        const auto relative = [&run](double got, const char* key) {
            return std::abs(got / run[key].get<double>() - 1);
        };
        flops_error.add(relative(rate.value(), "flops"), run.dump());
        images_error.add(relative(samples_per_second(groups).value(), "images_per_second"),
                         run.dump());
        vflops_error.add(relative(vflops(rate, coefficient).value(), "vflops"), run.dump());
    }
}

TEST(PenaltyCoefficient, FollowsEquation8) {
    EXPECT_DOUBLE_EQ(penalty_coefficient(0.4, 0.8, 5).value(), 1 / 32.0);
    EXPECT_DOUBLE_EQ(penalty_coefficient(0.75, 0.75, 5).value(), 1);
    EXPECT_DOUBLE_EQ(penalty_coefficient(0.9, 0.6, 2).value(), 2.25) << "it may exceed 1";
    EXPECT_DOUBLE_EQ(penalty_coefficient(0.1, 0.8, 0).value(), 1);
    EXPECT_DOUBLE_EQ(penalty_coefficient(0, 0.8, 5).value(), 0);
}

TEST(PenaltyCoefficient, IsEmptyIfUndefined) {
    EXPECT_FALSE(penalty_coefficient(0.5, 0, 5));
    EXPECT_FALSE(penalty_coefficient(0.5, -0.7, 5));
    EXPECT_FALSE(penalty_coefficient(-0.5, 0.7, 5));
    EXPECT_FALSE(penalty_coefficient(kNan, 0.7, 5));
    EXPECT_FALSE(penalty_coefficient(0.5, kNan, 5));
    EXPECT_FALSE(penalty_coefficient(0.5, kInfinity, 5));
    EXPECT_FALSE(penalty_coefficient(0.5, 0.7, kNan));
    EXPECT_FALSE(penalty_coefficient(0, 0.7, -1)) << "1 / 0";
    EXPECT_FALSE(penalty_coefficient(1, 1e-300, 5)) << "it overflows";
}

TEST(Vflops, AreTheProductOfBoth) {
    EXPECT_DOUBLE_EQ(vflops(2e12, 0.5).value(), 1e12);
    EXPECT_FALSE(vflops(std::nullopt, 0.5));
    EXPECT_FALSE(vflops(2e12, std::nullopt));
    EXPECT_FALSE(vflops(kInfinity, 0.0));
}

}  // namespace
}  // namespace hpcai::metrics
