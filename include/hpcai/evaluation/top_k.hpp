// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace hpcai::evaluation {

inline constexpr std::int32_t kPaddingLabel = -1;

/// How many samples have their label among the classes of the 1 and of the 5 highest scores.
struct TopK {
    std::int64_t correct_1 = 0;
    std::int64_t correct_5 = 0;
    std::int64_t samples = 0;
    bool operator==(const TopK&) const = default;
};

/// correct / samples, in [0, 1]; nothing when there is no sample.
std::optional<double> accuracy(std::int64_t correct, std::int64_t samples);

/// Counts over `scores` (labels.size(), classes), row by row. Classes are ranked by score, equal
/// scores by class number, the lower first, so the result does not depend on any sorting. A row
/// with a NaN is wrong. A sample labelled kPaddingLabel is not counted. Throws Error(data) for a
/// label that is neither that nor in [0, classes), Error(internal) when the sizes do not fit.
TopK top_k(std::span<const float> scores, std::span<const std::int32_t> labels,
           std::int64_t classes);

/// The class of the highest score of one row, the lowest of equals; nothing when a score is NaN.
std::optional<std::int32_t> predicted_class(std::span<const float> row);

struct Interval {
    double low = 0;
    double high = 1;
};

/// Wilson's score interval at 95 % for the probability of success after `correct` successes in
/// `samples` trials: E. B. Wilson, J. Am. Stat. Assoc. 22 (1927) 209-212, recommended by Brown,
/// Cai, DasGupta, Stat. Sci. 16 (2001) 101-133. [0, 1] when there is no sample. It covers the
/// finite test set only, not the spread of trainings. Throws Error(internal) unless
/// 0 <= correct <= samples.
Interval wilson_interval_95(std::int64_t correct, std::int64_t samples);

}  // namespace hpcai::evaluation
