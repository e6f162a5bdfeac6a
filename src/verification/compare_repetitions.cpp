// SPDX-License-Identifier: Apache-2.0
#include "compare_repetitions.hpp"

#include <algorithm>
#include <array>

#include <fmt/core.h>

#include <hpcai/verification/statistics.hpp>

namespace hpcai::verification {
namespace {

constexpr double kSameTimeOfRepetitions = 0.02;  // of a time, as between single runs
constexpr double kTestLevel = 0.05;              // of the test

struct RepetitionMetric {
    const char* key;
    Quantity RepetitionRecord::*of;
    RepetitionSpreadRecord RepetitionsRecord::*spread;
    bool more_is_better;
    bool is_speed;
};

constexpr std::array kRepetitionMetrics{
    RepetitionMetric{"scores.flops", &RepetitionRecord::flops, &RepetitionsRecord::flops, true,
                     true},
    RepetitionMetric{"scores.vflops", &RepetitionRecord::vflops, &RepetitionsRecord::vflops, true,
                     false},
    RepetitionMetric{"quality.ensemble", &RepetitionRecord::quality, &RepetitionsRecord::quality,
                     true, false},
    RepetitionMetric{"time.training_seconds", &RepetitionRecord::training_seconds,
                     &RepetitionsRecord::training_seconds, false, true},
};

std::vector<double> values_of(const RepetitionsRecord& record, Quantity RepetitionRecord::*of) {
    std::vector<double> values;
    for (const RepetitionRecord& one : record.repetitions) {
        if (one.counted && (one.*of).value) values.push_back(*(one.*of).value);
    }
    return values;
}

/// Whether no run of one is further than that from any of the other.
bool are_same(const std::vector<double>& first, const std::vector<double>& second) {
    const auto [low_1, high_1] = std::ranges::minmax(first);
    const auto [low_2, high_2] = std::ranges::minmax(second);
    return low_1 > 0 && low_2 >= (1 - kSameTimeOfRepetitions) * high_1 &&
           high_2 <= (1 + kSameTimeOfRepetitions) * low_1;
}

void judge(const RepetitionMetric& row, const std::vector<double>& first,
           const std::vector<double>& second, MetricComparison& metric) {
    metric.judgement = Judgement::unclear;
    if (first.empty() || second.empty()) {
        metric.why = "one has no run whose groups all finished";
        return;
    }
    const double p = rank_sum_p(first, second);
    metric.why =
        fmt::format("p = {:.3g} (rank sums of {} and {} runs)", p, first.size(), second.size());
    if (are_same(first, second)) {
        metric.judgement = Judgement::same;
        metric.why += fmt::format(", all within {} %", 100 * kSameTimeOfRepetitions);
    } else if (p <= kTestLevel) {
        const bool is_more = *metric.second.value > *metric.first.value;
        const bool is_better = is_more == row.more_is_better;
        metric.judgement = row.is_speed ? (is_better ? Judgement::faster : Judgement::slower)
                                        : (is_better ? Judgement::better : Judgement::worse);
    }
}

}  // namespace

void compare_repetitions(const RepetitionsRecord& first, const RepetitionsRecord& second,
                         std::vector<MetricComparison>& metrics) {
    for (const RepetitionMetric& row : kRepetitionMetrics) {
        for (MetricComparison& metric : metrics) {
            if (metric.key != row.key) continue;
            metric.first = (first.*row.spread).median;
            metric.second = (second.*row.spread).median;
            judge(row, values_of(first, row.of), values_of(second, row.of), metric);
        }
    }
}

}  // namespace hpcai::verification
