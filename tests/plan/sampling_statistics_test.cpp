// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "bags.hpp"
#include "support/chi_square.hpp"
#include "support/largest_error.hpp"

/// Compares draws with their distributions. Seeds are fixed, so a test always passes or always
/// fails. The limit of chi-square is its critical value of probability 0.001.
namespace hpcai::plan {
namespace {

using config::Sampler;

/// Returns the probabilities of 0, 1, ... `last` - 1 and at least `last` of Poisson(1).
std::vector<double> poisson_probabilities(std::size_t last) {
    std::vector<double> probabilities(last + 1);
    double probability = std::exp(-1.0), rest = 1;
    for (std::size_t k = 0; k < last; ++k) {
        probabilities[k] = probability;
        rest -= probability;
        probability /= static_cast<double>(k + 1);
    }
    probabilities[last] = rest;
    return probabilities;
}

/// Returns the same probabilities of Binomial(`trials`, `chance`).
std::vector<double> binomial_probabilities(std::size_t last, int trials, double chance) {
    std::vector<double> probabilities(last + 1);
    double probability = std::pow(1 - chance, trials), rest = 1;
    for (std::size_t k = 0; k < last; ++k) {
        probabilities[k] = probability;
        rest -= probability;
        const auto drawn = static_cast<double>(k);
        probability *= (trials - drawn) / (drawn + 1) * chance / (1 - chance);
    }
    probabilities[last] = rest;
    return probabilities;
}

double ratio_of(const std::vector<std::uint32_t>& values, std::vector<double> probabilities) {
    std::vector<double> seen(probabilities.size(), 0);
    for (const auto value : values) {
        seen[std::min<std::size_t>(value, seen.size() - 1)] += 1;
    }
    for (double& probability : probabilities) probability *= static_cast<double>(values.size());
    const auto degrees_of_freedom = static_cast<int>(seen.size()) - 1;
    return tests::chi_square_ratio(seen, probabilities, degrees_of_freedom);
}

/// Returns the counts of `sample` among `samples` for models 0, 1, ..., which are independent.
std::vector<std::uint32_t> counts_over_models(Sampler kind, std::uint32_t samples,
                                              std::uint32_t sample) {
    const DataSampler drawn = make_sampler(kind, samples, 11);
    std::vector<std::uint32_t> counts;
    for (std::uint32_t model = 0; model < 20000; ++model) {
        counts.push_back(drawn.counts(model)[sample]);
    }
    return counts;
}

TEST(Poisson, CountsFollowPoissonOfOneFarIntoItsTail) {
    tests::LargestError error(
        "counts of 4 million samples against Poisson(1), chi-square / critical, df 9", 1);
    for (const std::uint32_t model : {0U, 1U, 4096U}) {
        const auto counts = make_sampler(Sampler::poisson, 1U << 22, 8).counts(model);
        error.add(ratio_of({counts.begin(), counts.end()}, poisson_probabilities(9)),
                  fmt::format("model {}", model));
    }
}

TEST(Poisson, CountsOfOneSampleOverModelsFollowPoissonOfOne) {
    tests::LargestError error(
        "counts of a sample over models against Poisson(1), chi-square / critical, df 6", 1);
    for (const std::uint32_t sample : {0U, 1U, 2U, 9U}) {
        error.add(
            ratio_of(counts_over_models(Sampler::poisson, 10, sample), poisson_probabilities(6)),
            fmt::format("sample {}", sample));
    }
}

TEST(Bootstrap, CountsOfOneSampleOverModelsFollowTheBinomialDistribution) {
    tests::LargestError error(
        "counts of a sample over models against Binomial(10, 1/10), "
        "chi-square / critical, df 4",
        1);
    for (const std::uint32_t sample : {0U, 1U, 2U, 9U}) {
        error.add(ratio_of(counts_over_models(Sampler::bootstrap, 10, sample),
                           binomial_probabilities(4, 10, 0.1)),
                  fmt::format("sample {}", sample));
    }
}

class EitherBootstrap : public testing::TestWithParam<Sampler> {};
INSTANTIATE_TEST_SUITE_P(Both, EitherBootstrap,
                         testing::Values(Sampler::poisson, Sampler::bootstrap));

TEST_P(EitherBootstrap, LeavesASampleOutOfAsManyOfEightBagsAsTheBinomialDistributionPredicts) {
    const std::uint32_t samples = 50000, models = 8;
    const DataSampler drawn = make_sampler(GetParam(), samples, 21);
    std::vector<std::uint32_t> out_of(samples, 0);
    for (std::uint32_t model = 0; model < models; ++model) {
        const auto mask = drawn.out_of_bag(model);
        std::transform(mask.begin(), mask.end(), out_of.begin(), out_of.begin(), std::plus<>());
    }
    tests::LargestError error(
        "bags without a sample against Binomial(8, 36.8 %), chi-square / critical, df 8", 1);
    error.add(ratio_of(out_of, binomial_probabilities(8, models, std::exp(-1.0))));
}

/// Returns Pearson's correlation of counts of mean 1 and variance 1.
double correlation(const std::vector<std::uint16_t>& a, const std::vector<std::uint16_t>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - 1.0) * (b[i] - 1.0);
    return sum / static_cast<double>(a.size());
}

TEST_P(EitherBootstrap, BagsOfDifferentModelsAndSeedsAreUncorrelated) {
    const std::uint32_t samples = 20000;
    std::vector<std::vector<std::uint16_t>> bags;
    for (const std::uint64_t seed : {1ULL, 2ULL, 1ULL + (1ULL << 32), 1ULL + (1ULL << 63)}) {
        for (const std::uint32_t model : {0U, 1U, 2U, 1U << 31, 0xffffffffU}) {
            bags.push_back(make_sampler(GetParam(), samples, seed).counts(model));
        }
    }
    double sum = 0;
    for (std::size_t a = 0; a < bags.size(); ++a) {
        for (std::size_t b = 0; b < a; ++b) sum += std::pow(correlation(bags[a], bags[b]), 2);
    }
    tests::LargestError error("correlations of 190 pairs of bags, chi-square / critical, df 190",
                              1);
    error.add(sum * samples / tests::critical_chi_square(190));
}

TEST_P(EitherBootstrap, CountsOfNeighbouringSamplesAreUncorrelated) {
    const std::uint32_t samples = 200000;
    const auto counts = make_sampler(GetParam(), samples, 31).counts(0);
    double sum = 0;
    for (std::ptrdiff_t distance = 1; distance <= 8; ++distance) {
        auto moved = counts;
        std::rotate(moved.begin(), moved.begin() + distance, moved.end());
        sum += std::pow(correlation(counts, moved), 2);
    }
    tests::LargestError error(
        "correlations at distances 1 to 8 of a bag, chi-square / critical, df 8", 1);
    error.add(sum * samples / tests::critical_chi_square(8));
}

TEST(EpochOrder, HasEverySampleAtEveryPlaceEquallyOften) {
    const std::uint32_t samples = 32, epochs = 20000;
    const DataSampler drawn = make_sampler(Sampler::none, samples, 41);
    std::vector<double> seen(samples * samples, 0);
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        const auto order = drawn.epoch_order(3, epoch);
        ASSERT_EQ(std::set(order.begin(), order.end()).size(), samples) << "no permutation";
        for (std::uint32_t place = 0; place < samples; ++place) {
            seen[place * samples + order[place]] += 1;
        }
    }
    const std::vector<double> expected(seen.size(), epochs / static_cast<double>(samples));
    tests::LargestError error("sample by place in 20000 epochs, chi-square / critical, df 961", 1);
    error.add(tests::chi_square_ratio(seen, expected, 961));
}

TEST(EpochOrder, PutsEverySampleAfterEveryOtherEquallyOften) {
    const std::uint32_t samples = 16, epochs = 20000;
    const DataSampler drawn = make_sampler(Sampler::none, samples, 42);
    std::vector<double> seen(samples * samples, 0);
    for (std::uint32_t epoch = 0; epoch < epochs; ++epoch) {
        const auto order = drawn.epoch_order(0, epoch);
        for (std::size_t place = 1; place < samples; ++place) {
            seen[order[place - 1] * samples + order[place]] += 1;
        }
    }
    std::erase(seen, 0.0);  // no sample follows itself
    ASSERT_EQ(seen.size(), samples * (samples - 1));
    const std::vector<double> expected(seen.size(), epochs / static_cast<double>(samples));
    tests::LargestError error(
        "sample by sample before it in 20000 epochs, chi-square / critical, df 225", 1);
    error.add(tests::chi_square_ratio(seen, expected, 225));
}

TEST(DataSampler, DrawsTheSameInFourThreadsAtOnceAsAlone) {
    for (const Sampler kind :
         {Sampler::poisson, Sampler::bootstrap, Sampler::subsample, Sampler::none}) {
        const DataSampler shared = make_sampler(kind, 3000, 51);
        std::vector<std::vector<std::uint32_t>> alone;
        for (std::uint32_t model = 0; model < 8; ++model) {
            alone.push_back(shared.epoch_order(model, 2));
        }
        std::vector<int> wrong(4, 0);
        std::vector<std::jthread> threads;
        for (std::uint32_t thread = 0; thread < 4; ++thread) {
            threads.emplace_back([&, thread] {
                const DataSampler own = make_sampler(kind, 3000, 51);
                for (std::uint32_t i = 0; i < 8; ++i) {
                    const std::uint32_t model = (i + 3 * thread) % 8;
                    wrong[thread] += own.epoch_order(model, 2) != alone[model];
                    wrong[thread] += shared.epoch_order(model, 2) != alone[model];
                }
            });
        }
        threads.clear();
        EXPECT_EQ(wrong, std::vector<int>(4, 0)) << static_cast<int>(kind);
    }
}

}  // namespace
}  // namespace hpcai::plan
