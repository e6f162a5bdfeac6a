// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>

#include <hpcai/evaluation/statistics.hpp>

namespace hpcai::evaluation {
namespace {

constexpr double kSumRounding = 1e-9;  // relative difference of sums in different orders

/// Returns the sum of seconds.size() steps, drawn in blocks of consecutive steps. Blocks wrap
/// around at the last step, so that all steps are equally likely.
double draw_seconds(const std::vector<double>& seconds, CounterStream& stream) {
    const std::size_t count = seconds.size();
    const auto block = static_cast<std::size_t>(std::sqrt(static_cast<double>(count)));
    double sum = 0;
    for (std::size_t drawn = 0; drawn < count;) {
        const std::size_t start = stream.below(static_cast<std::uint32_t>(count));
        for (std::size_t step = 0; step < block && drawn < count; ++step, ++drawn) {
            sum += seconds[(start + step) % count];
        }
    }
    return sum;
}

/// Returns the maximum of `seconds_of(steps)` over the groups.
template <typename SecondsOf>
double slowest_group(const StepSeconds& groups, const SecondsOf& seconds_of) {
    double seconds = 0;
    for (const std::vector<double>& steps : groups) seconds = std::max(seconds, seconds_of(steps));
    return seconds;
}

bool can_resample(const StepSeconds& groups) {
    return !groups.empty() && std::ranges::all_of(groups, [](const std::vector<double>& seconds) {
        return seconds.size() > 1 &&
               std::ranges::any_of(seconds, [](double step) { return step > 0; });
    });
}

}  // namespace

std::vector<std::uint32_t> draw_images(std::int64_t images, CounterStream stream) {
    std::vector<std::uint32_t> times(static_cast<std::size_t>(images));
    for (std::int64_t count = 0; count < images; ++count) {
        ++times[stream.below(static_cast<std::uint32_t>(images))];
    }
    return times;
}

std::optional<Interval> interval_of_draws(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    std::ranges::sort(values);
    const std::size_t tail = values.size() / 40;  // 2.5 %
    return Interval{values[tail], values[values.size() - 1 - tail]};
}

double mcnemar_p(std::int64_t only_first, std::int64_t only_second) {
    const std::int64_t total = only_first + only_second;
    const std::int64_t fewer = std::min(only_first, only_second);
    if (total == 0) return 1;
    const auto n = static_cast<double>(total);
    double sum = 0;
    for (std::int64_t count = 0; count <= fewer; ++count) {
        const auto k = static_cast<double>(count);
        sum += std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) -
                        n * std::log(2.0));
    }
    return std::min(1.0, 2 * sum);
}

double rank_sum_p(const std::vector<double>& first, const std::vector<double>& second) {
    std::vector<double> all = first;
    all.insert(all.end(), second.begin(), second.end());
    std::ranges::sort(all);
    const auto twice_rank = [&](double value) {  // twice the mean rank of ties is an integer
        const auto [low, high] = std::ranges::equal_range(all, value);
        return static_cast<std::size_t>((low - all.begin()) + (high - all.begin()) + 1);
    };
    std::size_t total = 0, rank_sum = 0;
    for (const double value : all) total += twice_rank(value);
    for (const double value : first) rank_sum += twice_rank(value);
    // ways[count][sum]: number of subsets of `count` values whose doubled ranks sum to `sum`
    std::vector<std::vector<double>> ways(first.size() + 1, std::vector<double>(total + 1));
    ways[0][0] = 1;
    for (const double value : all) {
        const std::size_t doubled = twice_rank(value);
        for (std::size_t count = first.size(); count > 0; --count) {
            for (std::size_t sum = total; sum >= doubled; --sum) {
                ways[count][sum] += ways[count - 1][sum - doubled];
            }
        }
    }
    const double expected = static_cast<double>(total) * static_cast<double>(first.size()) /
                            static_cast<double>(all.size());
    const double distance = std::abs(static_cast<double>(rank_sum) - expected);
    double divisions = 0, at_least_as_far = 0;
    for (std::size_t sum = 0; sum <= total; ++sum) {
        divisions += ways.back()[sum];
        if (std::abs(static_cast<double>(sum) - expected) >= distance - 1e-9) {
            at_least_as_far += ways.back()[sum];
        }
    }
    return at_least_as_far / divisions;
}

std::optional<Interval> time_ratio_95(const StepSeconds& first, const StepSeconds& second) {
    if (!can_resample(first) || !can_resample(second)) return std::nullopt;
    std::vector<double> ratios;
    for (std::uint32_t replicate = 0; replicate < kReplicates; ++replicate) {
        CounterStream stream(kDrawSeed, RandomPurpose::confidence, replicate);
        const auto draw = [&](const auto& steps) { return draw_seconds(steps, stream); };
        const double time_1 = slowest_group(first, draw), time_2 = slowest_group(second, draw);
        if (time_1 > 0) ratios.push_back(time_2 / time_1);
    }
    const std::optional<Interval> interval = interval_of_draws(std::move(ratios));
    if (!interval) return std::nullopt;
    const auto sum = [](const auto& steps) { return std::reduce(steps.begin(), steps.end()); };
    const double observed = slowest_group(second, sum) / slowest_group(first, sum);
    const double rounding = kSumRounding * observed;
    const bool contains_observed =
        interval->low <= observed + rounding && observed <= interval->high + rounding;
    return contains_observed ? interval : std::nullopt;
}

std::optional<Interval> image_interval_95(
    std::int64_t images,
    const std::function<std::optional<double>(std::span<const std::uint32_t> times)>& statistic,
    std::uint64_t seed) {
    std::vector<double> values;
    for (std::uint32_t replicate = 0; replicate < kReplicates; ++replicate) {
        const CounterStream stream(seed, RandomPurpose::confidence, replicate);
        if (const auto value = statistic(draw_images(images, stream))) values.push_back(*value);
    }
    return interval_of_draws(std::move(values));
}

}  // namespace hpcai::evaluation
