// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

namespace hpcai::search {

/// A Gaussian process of mean 0 and variance 1 with the covariance exp(-d^2) at distance d
/// (Rasmussen and Williams 2006, algorithm 2.1).
class GaussianProcess {
public:
    /// `distances` is a symmetric matrix of points x points. The variance of the noise is 0.01,
    /// because equal graphs may have different accuracies. If the covariance is then not positive
    /// definite, the variance is the smallest larger power of ten with which it is.
    GaussianProcess(std::span<const double> distances, std::span<const double> values);

    struct Prediction {
        double mean = 0;
        double deviation = 1;
    };
    /// Predicts the value at a point with these distances to the known points.
    Prediction predict(std::span<const double> distances) const;

    double noise() const noexcept { return noise_; }

private:
    bool factorize(std::span<const double> distances);
    /// Solves L x = b, and L^T x = b.
    std::vector<double> solve_lower(std::vector<double> b) const;
    std::vector<double> solve_upper(std::vector<double> b) const;

    std::size_t points_;
    double noise_ = 0.01;
    std::vector<double> lower_;    // (points, points) Cholesky factor of the covariance
    std::vector<double> weights_;  // (points) inverse covariance times values
};

}  // namespace hpcai::search
