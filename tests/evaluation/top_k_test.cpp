// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::evaluation {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TopK one_row(const std::vector<float>& row, std::int32_t label) {
    return top_k(row, std::vector{label}, static_cast<std::int64_t>(row.size()));
}

TEST(TopKCount, RanksTheLabelAmongTheScores) {
    const std::vector<float> row{0.1F, 0.6F, 0.05F, 0.2F, 0.03F, 0.015F, 0.005F};
    EXPECT_EQ(one_row(row, 1), (TopK{1, 1, 1}));
    EXPECT_EQ(one_row(row, 3), (TopK{0, 1, 1}));
    EXPECT_EQ(one_row(row, 4), (TopK{0, 1, 1}));  // fifth
    EXPECT_EQ(one_row(row, 5), (TopK{0, 0, 1}));  // sixth
}

TEST(TopKCount, GivesATieToTheLowerClass) {
    const std::vector<float> row(6, 0.5F);
    EXPECT_EQ(one_row(row, 0), (TopK{1, 1, 1}));
    EXPECT_EQ(one_row(row, 1), (TopK{0, 1, 1}));
    EXPECT_EQ(one_row(row, 4), (TopK{0, 1, 1}));
    EXPECT_EQ(one_row(row, 5), (TopK{0, 0, 1}));
}

TEST(TopKCount, AgreesWithPredictedClassOnTop1) {
    const std::vector<float> row{0.2F, 0.4F, 0.4F};
    EXPECT_EQ(predicted_class(row), 1);
    EXPECT_EQ(one_row(row, 1).correct_1, 1);
    EXPECT_EQ(one_row(row, 2).correct_1, 0);
    EXPECT_EQ(predicted_class(std::vector{0.2F, kNan}), std::nullopt);
    EXPECT_EQ(predicted_class({}), std::nullopt);
}

TEST(TopKCount, DoesNotCountPadding) {
    const std::vector<float> scores{0.9F, 0.1F, 0.9F, 0.1F, kNan, kNan};
    EXPECT_EQ(top_k(scores, std::vector{0, kPaddingLabel, kPaddingLabel}, 2), (TopK{1, 1, 1}));
}

TEST(TopKCount, CountsARowWithANanAsWrongWhereverTheNanIs) {
    for (std::size_t place = 0; place < 3; ++place) {
        std::vector<float> row{0.5F, 0.3F, 0.2F};
        row[place] = kNan;
        for (std::int32_t label = 0; label < 3; ++label) {
            EXPECT_EQ(one_row(row, label), (TopK{0, 0, 1}));
        }
    }
}

TEST(TopKCount, RejectsLabelsThatAreNoClass) {
    for (const std::int32_t label : {-2, 2, std::numeric_limits<std::int32_t>::max()}) {
        try {
            one_row({0.5F, 0.5F}, label);
            FAIL() << "label " << label << " was taken";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::data);
            EXPECT_NE(std::string(error.what()).find(std::to_string(label)), std::string::npos);
        }
    }
    EXPECT_THROW(top_k(std::vector<float>(5), std::vector{0, 1}, 2), Error);
}

TEST(Accuracy, OfNoSampleIsNothing) {
    EXPECT_EQ(accuracy(0, 0), std::nullopt);
    EXPECT_EQ(accuracy(1, 4), 0.25);
}

TEST(WilsonInterval, GivesNewcombesPublishedValues) {
    // R. G. Newcombe, Statistics in Medicine 17 (1998) 857-872, table I, method 3.
    struct Row {
        std::int64_t correct, samples;
        double low, high;
    };
    for (const Row& row : {Row{81, 263, 0.2553, 0.3662}, Row{15, 148, 0.0624, 0.1605},
                           Row{0, 20, 0.0000, 0.1611}, Row{1, 29, 0.0061, 0.1718}}) {
        const Interval interval = wilson_interval_95(row.correct, row.samples);
        EXPECT_NEAR(interval.low, row.low, 5e-5) << row.correct;
        EXPECT_NEAR(interval.high, row.high, 5e-5) << row.correct;
    }
}

TEST(WilsonInterval, StaysWithinZeroAndOneAndMirrors) {
    const Interval none = wilson_interval_95(0, 0);
    EXPECT_EQ(none.low, 0);
    EXPECT_EQ(none.high, 1);
    const Interval all = wilson_interval_95(20, 20);
    const Interval nothing = wilson_interval_95(0, 20);
    EXPECT_EQ(all.high, 1);
    EXPECT_EQ(nothing.low, 0);
    EXPECT_NEAR(all.low, 1 - nothing.high, 1e-15);
    EXPECT_THROW(wilson_interval_95(3, 2), Error);
    EXPECT_THROW(wilson_interval_95(-1, 2), Error);
}

}  // namespace
}  // namespace hpcai::evaluation
