// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/search/settings.hpp>

/// The independent tree-structured Parzen estimator for one hyper-parameter (Bergstra et al. 2011),
/// with the constants of optuna 5.0.0 with multivariate=False.
namespace hpcai::search {

/// A trial. A list of observations has the order of seen_trials().
struct Observation {
    double value = 0;     // of the hyper-parameter
    double accuracy = 0;  // of a finished trial
    bool is_finished = true;
};

/// A mixture of one component for each of k observations, and a prior. Components of a number are
/// normal distributions, truncated to [low, high]; if the dimension is logarithmic, of its
/// logarithm. Components of choices have the weight 1/(k + 1) and, for the observed one, 1 more.
class ParzenEstimator {
public:
    /// Throws Error(data) if a value is not in the dimension.
    ParzenEstimator(const Dimension& dimension, std::span<const double> values);

    /// The logarithm of the density at a value of the dimension, or of a choice's probability. The
    /// density is that of the logarithm if the dimension is logarithmic.
    double log_density(double value) const;
    double draw(CounterStream& draws) const;

private:
    struct Component {
        double centre = 0;            // of a number
        double deviation = 0;         // of a number
        double log_mass = 0;          // of a number: log of the normal mass in [low, high]
        std::vector<double> weights;  // of choices
    };

    void add_numbers(std::span<const double> values);
    void add_choices(std::span<const double> values);
    double log_density(const Component& component, double value) const;
    double draw(const Component& component, CounterStream& draws) const;

    Dimension dimension_;
    double low_ = 0;  // of numbers; of their logarithms if the dimension is logarithmic
    double high_ = 1;
    std::vector<double> weights_;  // of the components; the sum is 1
    std::vector<Component> components_;
};

/// Returns the weights of k observations in order, then of the prior, divided by their sum. Each is
/// 1, except that with k > 25 the oldest k - 25 are linspace(1/k, 1, k - 25).
std::vector<double> component_weights(std::size_t observations);

/// The values of the best min(ceil(0.1 n), 25) of n finished trials, and of the others, including
/// running ones. Both are in the order of `observations`; of equal accuracies the earlier is
/// better.
struct Split {
    std::vector<double> best;
    std::vector<double> others;
};
Split split(std::span<const Observation> observations);

/// Returns the value for the next trial: of 24 draws from the estimator of the best trials, the one
/// with the largest ratio of its density to that of the others. With fewer than 10 finished trials
/// the value is uniform, in the logarithm if the dimension is logarithmic. Throws Error(data) if an
/// observed value is not in the dimension.
double suggest(const Dimension& dimension, std::span<const Observation> observations,
               CounterStream& draws);

}  // namespace hpcai::search
