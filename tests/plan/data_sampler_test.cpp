// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/plan/data_sampler.hpp>

namespace hpcai::plan {
namespace {

using config::Sampler;

DataSampler sampler(Sampler kind, std::uint32_t samples, std::uint64_t seed = 1,
                    double fraction = 0.632) {
    config::BaggingConfig bagging;
    bagging.sampler = kind;
    bagging.subsample_fraction = fraction;
    return DataSampler(bagging, seed, samples);
}

constexpr Sampler kAll[] = {Sampler::poisson, Sampler::bootstrap, Sampler::subsample,
                            Sampler::none};

/// Returns chi-square of the numbers of samples with counts 0, 1, ... 4 and at least 5, against
/// Poisson(1).
double chi_square_against_poisson(const std::vector<std::uint16_t>& counts) {
    std::vector<double> seen(6, 0);
    for (const auto count : counts) seen[std::min<std::size_t>(count, 5)] += 1;
    double chi_square = 0, probability = std::exp(-1.0), rest = 1;
    for (std::size_t k = 0; k < 6; ++k) {
        const double expected = static_cast<double>(counts.size()) * (k < 5 ? probability : rest);
        chi_square += std::pow(seen[k] - expected, 2) / expected;
        rest -= probability;
        probability /= static_cast<double>(k + 1);
    }
    return chi_square;
}

class EachSampler : public ::testing::TestWithParam<Sampler> {};
INSTANTIATE_TEST_SUITE_P(All, EachSampler, ::testing::ValuesIn(kAll));

class EachBootstrap : public ::testing::TestWithParam<Sampler> {};
INSTANTIATE_TEST_SUITE_P(Both, EachBootstrap,
                         ::testing::Values(Sampler::poisson, Sampler::bootstrap));

TEST_P(EachBootstrap, CountsSamplesAsOftenAsPoissonOfOne) {
    for (std::uint32_t model = 0; model < 3; ++model) {
        const auto counts = sampler(GetParam(), 200000).counts(model);
        EXPECT_LT(chi_square_against_poisson(counts), 20.5);  // 5 degrees of freedom, p = 0.001
    }
}

TEST_P(EachBootstrap, LeavesThirtySixPointEightPercentOutOfTheBag) {
    const std::uint32_t samples = 100000;
    const auto mask = sampler(GetParam(), samples).out_of_bag(0);
    const double share = std::accumulate(mask.begin(), mask.end(), 0.0) / samples;
    EXPECT_NEAR(share, std::exp(-1.0), 5 * std::sqrt(0.368 * 0.632 / samples));
}

TEST_P(EachBootstrap, FavoursNoPartOfTheSamples) {
    const std::uint32_t samples = 64000, bins = 64;
    const auto counts = sampler(GetParam(), samples, 5).counts(2);
    std::vector<double> seen(bins, 0);
    for (std::uint32_t i = 0; i < samples; ++i) seen[i / (samples / bins)] += counts[i];
    double chi_square = 0;
    for (const double count : seen) chi_square += std::pow(count - 1000, 2) / 1000;
    EXPECT_LT(chi_square, 103.4);  // 63 degrees of freedom, p = 0.001
}

TEST_P(EachBootstrap, DrawsModelsIndependently) {
    const std::uint32_t samples = 100000;
    const DataSampler both = sampler(GetParam(), samples);
    const auto first = both.counts(0), second = both.counts(1);
    double covariance = 0;
    for (std::uint32_t i = 0; i < samples; ++i) {
        covariance += (first[i] - 1.0) * (second[i] - 1.0) / samples;
    }
    EXPECT_NEAR(covariance, 0, 5 / std::sqrt(samples));
}

TEST(Bootstrap, DrawsExactlyAsManyAsThereAreSamples) {
    for (const std::uint32_t samples : {1u, 2u, 3u, 1000u, 99999u}) {
        EXPECT_EQ(sampler(Sampler::bootstrap, samples).in_bag_size(4), samples);
    }
}

TEST(Poisson, CountsASampleTheSameWhateverTheNumberOfSamples) {
    const auto few = sampler(Sampler::poisson, 101).counts(3);
    const auto many = sampler(Sampler::poisson, 1000).counts(3);
    EXPECT_TRUE(std::equal(few.begin(), few.end(), many.begin()));
}

TEST(Subsample, TakesTheFractionWithoutReplacement) {
    const DataSampler tenth = sampler(Sampler::subsample, 1000, 1, 0.1);
    for (std::uint32_t model = 0; model < 4; ++model) {
        const auto counts = tenth.counts(model);
        EXPECT_EQ(std::count(counts.begin(), counts.end(), 1), 100);
        EXPECT_EQ(std::count(counts.begin(), counts.end(), 0), 900);
        EXPECT_EQ(tenth.in_bag_size(model), 100u);
    }
    EXPECT_NE(tenth.counts(0), tenth.counts(1));
    EXPECT_EQ(sampler(Sampler::subsample, 1000, 1, 1.0).in_bag_size(0), 1000u);
    EXPECT_EQ(sampler(Sampler::subsample, 3, 1, 0.01).in_bag_size(0), 1u);
}

TEST(Subsample, TakesEverySampleEquallyOften) {
    std::vector<double> taken(10, 0);
    const DataSampler three_of_ten = sampler(Sampler::subsample, 10, 9, 0.3);
    const int models = 10000;
    for (std::uint32_t model = 0; model < models; ++model) {
        const auto counts = three_of_ten.counts(model);
        for (std::size_t i = 0; i < 10; ++i) taken[i] += counts[i];
    }
    for (const double times : taken) EXPECT_NEAR(times, 3000, 5 * std::sqrt(models * 0.21));
}

TEST(None, GivesEveryModelAllSamplesInAnOrderOfItsOwn) {
    const DataSampler none = sampler(Sampler::none, 100);
    EXPECT_EQ(none.counts(7), std::vector<std::uint16_t>(100, 1));
    EXPECT_EQ(none.out_of_bag(7), std::vector<std::uint8_t>(100, 0));
    EXPECT_NE(none.epoch_order(0, 0), none.epoch_order(1, 0));
}

TEST_P(EachSampler, OrdersAnEpochAsAPermutationOfTheExpandedCounts) {
    const DataSampler drawn = sampler(GetParam(), 5003, 17);
    for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
        const auto order = drawn.epoch_order(2, epoch);
        EXPECT_EQ(order.size(), drawn.in_bag_size(2));
        std::vector<std::uint16_t> seen(5003, 0);
        for (const auto sample : order) ++seen.at(sample);
        EXPECT_EQ(seen, drawn.counts(2));
    }
}

TEST_P(EachSampler, OrdersEveryEpochModelAndSeedAgain) {
    const DataSampler one = sampler(GetParam(), 1000, 1), other = sampler(GetParam(), 1000, 2);
    EXPECT_EQ(one.epoch_order(0, 0), one.epoch_order(0, 0));
    EXPECT_NE(one.epoch_order(0, 0), one.epoch_order(0, 1));
    EXPECT_NE(one.epoch_order(0, 0), one.epoch_order(1, 0));
    EXPECT_NE(one.epoch_order(0, 0), other.epoch_order(0, 0));
    const DataSampler high_half = sampler(GetParam(), 1000, 1 + (std::uint64_t{1} << 32));
    EXPECT_NE(one.epoch_order(0, 0), high_half.epoch_order(0, 0));
}

TEST_P(EachSampler, DependsOnNeitherMNorDegree) {
    config::BaggingConfig small, large;
    small.sampler = large.sampler = GetParam();
    small.groups = 2;
    large.groups = 1000;
    large.degree = 64;
    const DataSampler few(small, 3, 500), many(large, 3, 500);
    EXPECT_EQ(few.counts(1), many.counts(1));
    EXPECT_EQ(few.epoch_order(1, 4), many.epoch_order(1, 4));
}

TEST_P(EachSampler, MarksOutOfBagWhatCountsZero) {
    const DataSampler drawn = sampler(GetParam(), 300);
    const auto counts = drawn.counts(5);
    const auto mask = drawn.out_of_bag(5);
    ASSERT_EQ(mask.size(), 300u);
    for (std::size_t i = 0; i < 300; ++i) EXPECT_EQ(mask[i], counts[i] == 0 ? 1 : 0);
}

TEST(EpochOrder, IsEachOfAllPermutationsEquallyOften) {
    const DataSampler five = sampler(Sampler::none, 5);
    std::map<std::vector<std::uint32_t>, int> seen;
    for (std::uint32_t epoch = 0; epoch < 24000; ++epoch) ++seen[five.epoch_order(0, epoch)];
    EXPECT_EQ(seen.size(), 120u);
    double chi_square = 0;
    for (const auto& [order, times] : seen) chi_square += std::pow(times - 200.0, 2) / 200;
    EXPECT_LT(chi_square, 172.3);  // 119 degrees of freedom, p = 0.001
}

/// Compares with draws that another program computed from the contract. After a change of the
/// draws, results are not comparable with earlier ones, which CHANGELOG must state.
TEST(DataSampler, StillDrawsWhatItDrewWhenItWasDefined) {
    using Counts = std::vector<std::uint16_t>;
    using Order = std::vector<std::uint32_t>;
    EXPECT_EQ(sampler(Sampler::poisson, 16).counts(0),
              Counts({0, 0, 1, 2, 1, 0, 1, 1, 1, 1, 2, 1, 0, 2, 0, 1}));
    EXPECT_EQ(sampler(Sampler::bootstrap, 16).counts(0),
              Counts({1, 0, 0, 1, 3, 0, 3, 0, 2, 1, 2, 0, 2, 0, 1, 0}));
    EXPECT_EQ(sampler(Sampler::subsample, 16).counts(0),
              Counts({1, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 1, 1, 1, 0}));
    EXPECT_EQ(sampler(Sampler::none, 12).epoch_order(1, 2),
              Order({7, 11, 10, 1, 0, 5, 8, 3, 9, 6, 2, 4}));
    EXPECT_EQ(sampler(Sampler::poisson, 8).epoch_order(0, 0), Order({3, 6, 3, 4, 7, 2}));
}

TEST(DataSampler, RejectsWhatCannotBeDrawn) {
    EXPECT_THROW(sampler(Sampler::poisson, 0), Error);
    EXPECT_THROW(sampler(Sampler::none, 0x80000001u), Error);
    for (const double fraction : {0.0, -1.0, 1.001, std::nan("")}) {
        EXPECT_THROW(sampler(Sampler::subsample, 10, 1, fraction), Error) << fraction;
    }
}

TEST_P(EachSampler, DrawsImageNetInUnderASecondPerCall) {
    const DataSampler imagenet = sampler(GetParam(), 1281167);
    const auto start = std::chrono::steady_clock::now();
    const auto order = imagenet.epoch_order(0, 0);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2));  // shared cores
    EXPECT_GT(order.size(), 800000u);
}

}  // namespace
}  // namespace hpcai::plan
