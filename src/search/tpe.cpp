// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include <hpcai/base/error.hpp>
#include <hpcai/search/tpe.hpp>

namespace hpcai::search {
namespace {

constexpr std::size_t kStartTrials = 10;
constexpr std::size_t kDraws = 24;
constexpr std::size_t kFullWeights = 25;  // newest observations with weight 1
constexpr std::size_t kMaxBest = 25;

std::size_t choice_index(const Dimension& dimension, double value) {
    const auto found = std::ranges::find(dimension.choices, value);
    require(found != dimension.choices.end(), ExitCode::data, "{}: {} is not one of the choices",
            dimension.name, value);
    return static_cast<std::size_t>(found - dimension.choices.begin());
}

/// Returns the first index at which the cumulative sum of `weights` (total 1) exceeds `quantile`.
std::size_t index_at(std::span<const double> weights, double quantile) {
    double sum = 0;
    for (std::size_t index = 0; index + 1 < weights.size(); ++index) {
        sum += weights[index];
        if (quantile < sum) return index;
    }
    return weights.size() - 1;
}

/// Returns log(Phi(b) - Phi(a)) for a <= 0 <= b.
double log_normal_mass(double a, double b) {
    const auto below = [](double z) { return 0.5 * std::erfc(-z / std::numbers::sqrt2); };
    return std::log1p(-below(a) - below(-b));
}

/// Returns a deviation for each sorted centre: the larger distance to its neighbours. The first and
/// the last of several have only one neighbour. Those of a single centre are `low` and `high`.
std::vector<double> deviations(std::span<const double> sorted, double low, double high) {
    const std::size_t count = sorted.size();
    std::vector<double> result(count);
    for (std::size_t i = 0; i < count; ++i) {
        const double left = sorted[i] - (i == 0 ? low : sorted[i - 1]);
        const double right = (i + 1 == count ? high : sorted[i + 1]) - sorted[i];
        result[i] = std::max(left, right);
    }
    if (count >= 2) {
        result.front() = sorted[1] - sorted[0];
        result.back() = sorted[count - 1] - sorted[count - 2];
    }
    const double smallest = (high - low) / std::min(100.0, static_cast<double>(count) + 2);
    for (double& deviation : result) deviation = std::clamp(deviation, smallest, high - low);
    return result;
}

double uniform_value(const Dimension& dimension, CounterStream& draws) {
    if (!dimension.choices.empty()) {
        return dimension.choices[draws.below(static_cast<std::uint32_t>(dimension.choices.size()))];
    }
    const double share = draws.uniform();
    if (!dimension.is_logarithmic) {
        return dimension.low + share * (dimension.high - dimension.low);
    }
    const double low = std::log(dimension.low), high = std::log(dimension.high);
    return std::clamp(std::exp(low + share * (high - low)), dimension.low, dimension.high);
}

}  // namespace

std::vector<double> component_weights(std::size_t observations) {
    std::vector<double> weights(observations + 1, 1.0);
    if (observations > kFullWeights) {
        const std::size_t ramp = observations - kFullWeights;
        const double first = 1.0 / static_cast<double>(observations);
        for (std::size_t i = 0; i < ramp; ++i) {
            const double share =
                ramp == 1 ? 0 : static_cast<double>(i) / static_cast<double>(ramp - 1);
            weights[i] = first + share * (1 - first);
        }
    }
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& weight : weights) weight /= sum;
    return weights;
}

Split split(std::span<const Observation> observations) {
    std::vector<std::size_t> finished;
    for (std::size_t i = 0; i < observations.size(); ++i) {
        if (observations[i].is_finished) finished.push_back(i);
    }
    std::ranges::stable_sort(finished, std::greater<>(),
                             [&](std::size_t i) { return observations[i].accuracy; });
    // ceil(0.1 n) with the rounding of floating-point numbers, as in optuna
    const auto tenth =
        static_cast<std::size_t>(std::ceil(0.1 * static_cast<double>(finished.size())));
    std::vector<bool> is_best(observations.size());
    for (std::size_t i = 0; i < std::min(tenth, kMaxBest); ++i) is_best[finished[i]] = true;
    Split result;
    for (std::size_t i = 0; i < observations.size(); ++i) {
        (is_best[i] ? result.best : result.others).push_back(observations[i].value);
    }
    return result;
}

ParzenEstimator::ParzenEstimator(const Dimension& dimension, std::span<const double> values)
    : dimension_(dimension), weights_(component_weights(values.size())) {
    if (dimension.choices.empty()) {
        add_numbers(values);
    } else {
        add_choices(values);
    }
}

void ParzenEstimator::add_numbers(std::span<const double> values) {
    const bool is_log = dimension_.is_logarithmic;
    low_ = is_log ? std::log(dimension_.low) : dimension_.low;
    high_ = is_log ? std::log(dimension_.high) : dimension_.high;
    std::vector<double> centres;
    for (const double value : values) {
        require(value >= dimension_.low && value <= dimension_.high, ExitCode::data,
                "{}: {} is not from {} to {}", dimension_.name, value, dimension_.low,
                dimension_.high);
        centres.push_back(is_log ? std::log(value) : value);
    }
    std::vector<std::size_t> order(centres.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return centres[i]; });
    std::vector<double> sorted;
    for (const std::size_t i : order) sorted.push_back(centres[i]);
    const std::vector<double> widths = deviations(sorted, low_, high_);
    components_.resize(centres.size() + 1);
    for (std::size_t i = 0; i < order.size(); ++i) {
        components_[order[i]] = {sorted[i], widths[i], 0, {}};
    }
    components_.back() = {0.5 * (low_ + high_), high_ - low_, 0, {}};
    for (Component& component : components_) {
        component.log_mass = log_normal_mass((low_ - component.centre) / component.deviation,
                                             (high_ - component.centre) / component.deviation);
    }
}

void ParzenEstimator::add_choices(std::span<const double> values) {
    const std::size_t choices = dimension_.choices.size();
    const double everywhere = 1.0 / static_cast<double>(values.size() + 1);
    for (const double value : values) {
        std::vector<double> weights(choices, everywhere);
        weights[choice_index(dimension_, value)] += 1;
        const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
        for (double& weight : weights) weight /= sum;
        components_.push_back({0, 0, 0, std::move(weights)});
    }
    const double uniform = 1.0 / static_cast<double>(choices);
    components_.push_back({0, 0, 0, std::vector<double>(choices, uniform)});
}

double ParzenEstimator::log_density(const Component& component, double value) const {
    if (!component.weights.empty()) {
        return std::log(component.weights[choice_index(dimension_, value)]);
    }
    const double number = dimension_.is_logarithmic ? std::log(value) : value;
    const double z = (number - component.centre) / component.deviation;
    return -0.5 * z * z - 0.5 * std::log(2 * std::numbers::pi) - component.log_mass -
           std::log(component.deviation);
}

double ParzenEstimator::log_density(double value) const {
    std::vector<double> terms;
    for (std::size_t i = 0; i < components_.size(); ++i) {
        terms.push_back(log_density(components_[i], value) + std::log(weights_[i]));
    }
    const double largest = std::ranges::max(terms);
    double sum = 0;
    for (const double term : terms) sum += std::exp(term - largest);
    return std::log(sum) + largest;
}

double ParzenEstimator::draw(const Component& component, CounterStream& draws) const {
    if (!component.weights.empty()) {
        return dimension_.choices[index_at(component.weights, draws.uniform())];
    }
    // A centre is in [low, high] and a deviation is at most high - low: at least one in three
    // numbers is accepted.
    double number = 0;
    do {
        number = component.centre + component.deviation * draws.normal();
    } while (number < low_ || number > high_);
    if (!dimension_.is_logarithmic) return number;
    return std::clamp(std::exp(number), dimension_.low, dimension_.high);
}

double ParzenEstimator::draw(CounterStream& draws) const {
    return draw(components_[index_at(weights_, draws.uniform())], draws);
}

double suggest(const Dimension& dimension, std::span<const Observation> observations,
               CounterStream& draws) {
    if (dimension.choices.empty() && dimension.low == dimension.high) return dimension.low;
    const auto finished = std::ranges::count_if(
        observations, [](const Observation& observation) { return observation.is_finished; });
    if (static_cast<std::size_t>(finished) < kStartTrials) return uniform_value(dimension, draws);
    const Split parts = split(observations);
    const ParzenEstimator best(dimension, parts.best), others(dimension, parts.others);
    double largest = -std::numeric_limits<double>::infinity(), value = 0;
    for (std::size_t i = 0; i < kDraws; ++i) {
        const double candidate = best.draw(draws);
        const double ratio = best.log_density(candidate) - others.log_density(candidate);
        if (ratio > largest) {
            largest = ratio;
            value = candidate;
        }
    }
    return value;
}

}  // namespace hpcai::search
