// SPDX-License-Identifier: Apache-2.0
#include "gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include <hpcai/base/error.hpp>

namespace hpcai::search {
namespace {

double covariance(double distance) {
    return std::exp(-distance * distance);
}

}  // namespace

GaussianProcess::GaussianProcess(std::span<const double> distances, std::span<const double> values)
    : points_(values.size()) {
    ensure(distances.size() == points_ * points_, "{} distances between {} points",
           distances.size(), points_);
    while (!factorize(distances)) noise_ *= 10;
    weights_ = solve_upper(solve_lower({values.begin(), values.end()}));
}

bool GaussianProcess::factorize(std::span<const double> distances) {
    lower_.assign(points_ * points_, 0);
    for (std::size_t i = 0; i < points_; ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const double* const row_i = &lower_[i * points_];
            const double* const row_j = &lower_[j * points_];
            const double rest = covariance(distances[i * points_ + j]) + (i == j ? noise_ : 0) -
                                std::inner_product(row_i, row_i + j, row_j, 0.0);
            if (i == j && !(rest > 0)) return false;
            lower_[i * points_ + j] = i == j ? std::sqrt(rest) : rest / row_j[j];
        }
    }
    return true;
}

std::vector<double> GaussianProcess::solve_lower(std::vector<double> b) const {
    for (std::size_t i = 0; i < points_; ++i) {
        const double* const row = &lower_[i * points_];
        b[i] = (b[i] - std::inner_product(row, row + i, b.begin(), 0.0)) / row[i];
    }
    return b;
}

std::vector<double> GaussianProcess::solve_upper(std::vector<double> b) const {
    for (std::size_t i = points_; i-- > 0;) {
        for (std::size_t j = i + 1; j < points_; ++j) b[i] -= lower_[j * points_ + i] * b[j];
        b[i] /= lower_[i * points_ + i];
    }
    return b;
}

GaussianProcess::Prediction GaussianProcess::predict(std::span<const double> distances) const {
    ensure(distances.size() == points_, "{} distances to {} points", distances.size(), points_);
    std::vector<double> shared;
    for (const double distance : distances) shared.push_back(covariance(distance));
    const double mean = std::inner_product(shared.begin(), shared.end(), weights_.begin(), 0.0);
    const std::vector<double> solved = solve_lower(std::move(shared));
    const double explained = std::inner_product(solved.begin(), solved.end(), solved.begin(), 0.0);
    return {mean, std::sqrt(std::max(0.0, 1 - explained))};
}

}  // namespace hpcai::search
