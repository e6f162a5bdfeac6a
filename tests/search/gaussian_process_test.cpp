// SPDX-License-Identifier: Apache-2.0
#include "search/gaussian_process.hpp"

#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>

namespace hpcai::search {
namespace {

using Matrix = std::vector<std::vector<double>>;

/// By Gauss-Jordan elimination.
Matrix inverse(Matrix a) {
    const std::size_t n = a.size();
    Matrix b(n, std::vector<double>(n));
    for (std::size_t i = 0; i < n; ++i) b[i][i] = 1;
    for (std::size_t i = 0; i < n; ++i) {
        const double pivot = a[i][i];
        for (std::size_t k = 0; k < n; ++k) a[i][k] /= pivot, b[i][k] /= pivot;
        for (std::size_t j = 0; j < n; ++j) {
            const double factor = j == i ? 0 : a[j][i];
            for (std::size_t k = 0; k < n; ++k)
                a[j][k] -= factor * a[i][k], b[j][k] -= factor * b[i][k];
        }
    }
    return b;
}

/// Tolerance 1e-10, because the covariance has a condition number of up to 1e3.
TEST(GaussianProcess, PredictsByTheFormula) {
    CounterStream draws(1, RandomPurpose::test);
    std::vector<double> places, values, distances, distances_to_new;
    for (int i = 0; i < 12; ++i)
        places.push_back(3 * draws.uniform()), values.push_back(draws.uniform());
    Matrix covariance(12, std::vector<double>(12));
    for (std::size_t i = 0; i < 12; ++i) {
        distances_to_new.push_back(std::abs(places[i] - 1.1));
        for (std::size_t j = 0; j < 12; ++j) {
            distances.push_back(std::abs(places[i] - places[j]));
            covariance[i][j] = std::exp(-std::pow(distances.back(), 2)) + (i == j ? 0.01 : 0);
        }
    }
    const Matrix inverted = inverse(covariance);
    double mean = 0, variance = 1;
    for (std::size_t i = 0; i < 12; ++i) {
        for (std::size_t j = 0; j < 12; ++j) {
            const double shared = std::exp(-std::pow(distances_to_new[i], 2)) * inverted[i][j];
            mean += shared * values[j];
            variance -= shared * std::exp(-std::pow(distances_to_new[j], 2));
        }
    }
    const GaussianProcess process(distances, values);
    EXPECT_EQ(process.noise(), 0.01);
    EXPECT_NEAR(process.predict(distances_to_new).mean, mean, 1e-10);
    EXPECT_NEAR(process.predict(distances_to_new).deviation, std::sqrt(variance), 1e-10);
}

TEST(GaussianProcess, KnowsNothingFarAway) {
    const std::vector<double> distances{0, 1, 1, 0}, values{1, -1}, far{30, 40};
    const auto prediction = GaussianProcess(distances, values).predict(far);
    EXPECT_EQ(prediction.mean, 0);
    EXPECT_EQ(prediction.deviation, 1);
}

TEST(GaussianProcess, AveragesEqualPoints) {
    const std::vector<double> distances(9, 0), values{0.1, 0.2, 0.6}, here(3, 0);
    EXPECT_NEAR(GaussianProcess(distances, values).predict(here).mean, 0.3, 0.01);
}

TEST(GaussianProcess, AddsNoiseToAnIndefiniteCovariance) {
    // Two points at distance 0 from a third, but far from each other
    const std::vector<double> distances{0, 9, 0, 9, 0, 0, 0, 0, 0}, values{1, 2, 3}, here{0, 0, 0};
    const GaussianProcess process(distances, values);
    EXPECT_GT(process.noise(), 0.01);
    EXPECT_TRUE(std::isfinite(process.predict(here).mean));
}

}  // namespace
}  // namespace hpcai::search
