// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/search/tpe.hpp>

#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

namespace hpcai::search {
namespace {

using nlohmann::json;

const json& reference() {
    static const json file = tests::read_reference_json("search_tpe.json");
    return file;
}

Dimension dimension_of(const json& in) {
    Dimension dimension;
    dimension.name = in.at("name");
    if (in.contains("choices")) {
        dimension.choices = in["choices"].get<std::vector<double>>();
    } else {
        dimension.low = in.at("low");
        dimension.high = in.at("high");
        dimension.is_logarithmic = in.at("log");
    }
    return dimension;
}

std::vector<Observation> observations_of(const json& trials) {
    std::vector<Observation> observations;
    for (const json& trial : trials) {
        const bool is_finished = !trial.at("accuracy").is_null();
        observations.push_back(
            {trial.at("value"), is_finished ? trial["accuracy"].get<double>() : 0.0, is_finished});
    }
    return observations;
}

TEST(ParzenEstimator, HasTheDensitiesOfOptuna) {
    tests::LargestError error("log density of a Parzen estimator, 0 to 120 observations", 1e-12);
    for (const json& entry : reference().at("densities")) {
        const auto observed = entry.at("observed").get<std::vector<double>>();
        const ParzenEstimator estimator(dimension_of(entry.at("dimension")), observed);
        const auto& points = entry.at("points");
        ASSERT_GE(points.size(), 3);
        for (std::size_t i = 0; i < points.size(); ++i) {
            error.add(std::abs(estimator.log_density(points[i].get<double>()) -
                               entry.at("log_densities")[i].get<double>()),
                      fmt::format("{}, {} observed", entry["dimension"].dump(), observed.size()));
        }
    }
}

/// Tolerance: 1e-15, the rounding of the sum.
TEST(ParzenEstimator, WeighsComponentsAsOptunaDoes) {
    for (const json& entry : reference().at("weights")) {
        const auto expected = entry.get<std::vector<double>>();
        const std::vector<double> weights = component_weights(expected.size() - 1);
        ASSERT_EQ(weights.size(), expected.size());
        for (std::size_t i = 0; i < weights.size(); ++i)
            EXPECT_NEAR(weights[i], expected[i], 1e-15);
    }
}

TEST(ParzenEstimator, DrawsWithItsDensity) {
    const Dimension dimension{"x", 1e-3, 1, true, {}, 1};
    const std::vector<double> observed{0.002, 0.01, 0.0101, 0.9};
    const ParzenEstimator estimator(dimension, observed);
    constexpr int kBins = 64, kDraws = 64000;
    const double low = std::log(1e-3), width = -low / kBins;
    std::vector<double> seen(kBins), expected(kBins);
    CounterStream draws(3, RandomPurpose::test);
    for (int i = 0; i < kDraws; ++i) {
        const double value = estimator.draw(draws);
        ASSERT_TRUE(value >= 1e-3 && value <= 1) << value;
        seen[static_cast<std::size_t>(std::min((std::log(value) - low) / width, kBins - 1.0))] += 1;
    }
    for (int bin = 0; bin < kBins; ++bin) {
        constexpr int kParts = 100;  // midpoint rule
        for (int part = 0; part < kParts; ++part) {
            const double at = low + width * (bin + (part + 0.5) / kParts);
            expected[static_cast<std::size_t>(bin)] +=
                kDraws * width / kParts * std::exp(estimator.log_density(std::exp(at)));
        }
    }
    double chi_square = 0;
    for (std::size_t i = 0; i < kBins; ++i)
        chi_square += std::pow(seen[i] - expected[i], 2) / expected[i];
    EXPECT_LT(chi_square, 103.4);  // 63 degrees of freedom, p = 0.001
}

TEST(ParzenEstimator, RejectsValuesOutsideOfTheDimension) {
    const std::vector<double> value{2};
    EXPECT_THROW(ParzenEstimator({"x", 0, 1, false, {}, 0}, value), Error);
    EXPECT_THROW(ParzenEstimator({"x", 0, 1, false, {1, 4}, 1}, value), Error);
}

TEST(Split, FindsTheBestTrialsOfOptuna) {
    for (const json& entry : reference().at("splits")) {
        const Split parts = split(observations_of(entry.at("trials")));
        EXPECT_EQ(parts.best, entry.at("best").get<std::vector<double>>());
        // optuna has running trials after finished ones; weights depend on the order by number
        std::vector<double> others = parts.others, expected = entry.at("others");
        std::ranges::sort(others);
        std::ranges::sort(expected);
        EXPECT_EQ(others, expected);
    }
}

TEST(Suggest, HasTheDistributionOfOptunasSuggestions) {
    for (const json& entry : reference().at("suggested")) {
        const Dimension dimension = dimension_of(entry.at("dimension"));
        const std::vector<Observation> observations = observations_of(entry.at("trials"));
        const std::size_t count = entry.at("suggestions");
        std::vector<double> values;
        for (std::uint32_t i = 0; i < count; ++i) {
            CounterStream draws(34, RandomPurpose::test, i);
            values.push_back(suggest(dimension, observations, draws));
        }
        std::ranges::sort(values);
        double largest = 0;  // difference of the distribution functions, at the bounds of the file
        for (std::size_t i = 0; i < entry.at("bounds").size(); ++i) {
            const auto below = std::ranges::lower_bound(values, entry["bounds"][i].get<double>());
            const auto ours = static_cast<double>(below - values.begin());
            largest = std::max(largest, std::abs(ours - entry["below"][i].get<double>()));
        }
        const auto total = static_cast<double>(count);
        // Kolmogorov-Smirnov with two samples, p = 0.001
        EXPECT_LT(largest / total * std::sqrt(total / 2), 1.9495) << dimension.name;
    }
}

TEST(Suggest, IsUniformUntilTenTrialsHaveFinished) {
    const Dimension dimension{"x", 1, 100, true, {}, 1};
    std::vector<Observation> observations(9, {1.5, 0.5, true});
    observations.push_back({1.5, 0, false});
    double sum = 0;
    for (std::uint32_t i = 0; i < 4000; ++i) {
        CounterStream draws(1, RandomPurpose::test, i);
        sum += std::log(suggest(dimension, observations, draws)) / std::log(100) / 4000;
    }
    EXPECT_NEAR(sum, 0.5, 5 * 0.2887 / std::sqrt(4000));
    observations.push_back({80, 0.9, true});
    double clustered = 0;
    for (std::uint32_t i = 0; i < 100; ++i) {
        CounterStream draws(1, RandomPurpose::test, i);
        clustered += std::log(suggest(dimension, observations, draws)) / std::log(100) / 100;
    }
    EXPECT_GT(clustered, 0.7);
}

TEST(Suggest, KeepsAConstant) {
    CounterStream draws(1, RandomPurpose::test);
    EXPECT_EQ(suggest({"x", 3, 3, false, {}, 3}, {}, draws), 3);
}

}  // namespace
}  // namespace hpcai::search
