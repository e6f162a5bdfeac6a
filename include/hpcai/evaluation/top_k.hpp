// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace hpcai::evaluation {

inline constexpr std::int32_t kPaddingLabel = -1;  // of rows that are not scored

/// Numbers of samples whose label has the highest score (correct_1) or one of the 5 highest.
struct TopK {
    std::int64_t correct_1 = 0;
    std::int64_t correct_5 = 0;
    std::int64_t samples = 0;
    bool operator==(const TopK&) const = default;
};

/// correct / samples, in [0, 1]; nothing without samples.
std::optional<double> accuracy(std::int64_t correct, std::int64_t samples);

/// Counts over `scores` (labels.size(), classes), row by row. Classes are ranked by score, equal
/// scores by ascending class number. A row with a NaN counts as wrong. Samples with the label
/// kPaddingLabel are not counted. Throws Error(data) for other labels outside of [0, classes),
/// Error(internal) if the sizes do not match.
TopK top_k(std::span<const float> scores, std::span<const std::int32_t> labels,
           std::int64_t classes);

/// Returns the class of the highest score, in a tie the lowest class; nothing if a score is NaN.
std::optional<std::int32_t> predicted_class(std::span<const float> row);

struct Interval {
    double low = 0;
    double high = 1;
};

/// Wilson's 95 % score interval for the probability of success after `correct` successes in
/// `samples` trials: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209-212, recommended by Brown,
/// Cai, DasGupta, Stat. Sci. 16 (2001) 101-133. [0, 1] without samples. It covers only the finite
/// test set, not the variation between runs. Throws Error(internal) unless 0 <= correct <= samples.
Interval wilson_interval_95(std::int64_t correct, std::int64_t samples);

}  // namespace hpcai::evaluation
