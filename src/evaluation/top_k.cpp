// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::evaluation {
namespace {

/// Counts the classes before `label` in top_k()'s order; the largest integer if a score is NaN.
std::int64_t count_better_classes(std::span<const float> row, std::size_t label) {
    std::int64_t before = 0;
    for (std::size_t index = 0; index < row.size(); ++index) {
        if (std::isnan(row[index])) return std::numeric_limits<std::int64_t>::max();
        before += row[index] > row[label] || (row[index] == row[label] && index < label);
    }
    return before;
}

}  // namespace

std::optional<double> accuracy(std::int64_t correct, std::int64_t samples) {
    if (samples == 0) return std::nullopt;
    return static_cast<double>(correct) / static_cast<double>(samples);
}

TopK top_k(std::span<const float> scores, std::span<const std::int32_t> labels,
           std::int64_t classes) {
    const auto width = static_cast<std::size_t>(classes);
    ensure(classes > 0 && scores.size() == labels.size() * width,
           "{} scores for {} labels and {} classes", scores.size(), labels.size(), classes);
    TopK counts;
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
        const std::int32_t label = labels[sample];
        if (label == kPaddingLabel) continue;
        require(label >= 0 && label < classes, ExitCode::data,
                "sample {} has the label {}, expected 0 to {}", sample, label, classes - 1);
        const std::int64_t better = count_better_classes(scores.subspan(sample * width, width),
                                                         static_cast<std::size_t>(label));
        counts.correct_1 += better < 1;
        counts.correct_5 += better < 5;
        ++counts.samples;
    }
    return counts;
}

std::optional<std::int32_t> predicted_class(std::span<const float> row) {
    std::optional<std::int32_t> best;
    for (std::size_t index = 0; index < row.size(); ++index) {
        if (std::isnan(row[index])) return std::nullopt;
        if (!best || row[index] > row[*best]) best = static_cast<std::int32_t>(index);
    }
    return best;
}

Interval wilson_interval_95(std::int64_t correct, std::int64_t samples) {
    ensure(correct >= 0 && correct <= samples, "{} correct of {} samples", correct, samples);
    if (samples == 0) return {0, 1};
    constexpr double z = 1.959963984540054;  // the 97.5 % quantile of the normal distribution
    const double n = static_cast<double>(samples);
    const double p = static_cast<double>(correct) / n;
    const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
    const double half_width =
        z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    return {std::max(0.0, centre - half_width), std::min(1.0, centre + half_width)};
}

}  // namespace hpcai::evaluation
