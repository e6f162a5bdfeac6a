// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <hpcai/evaluation/top_k.hpp>

namespace hpcai::workloads {

/// Softmax outputs of a model or an ensemble; a row is a sample or a cell of a sample.
struct Probabilities {
    std::span<const float> values;         // (rows, classes)
    std::span<const std::int32_t> labels;  // (rows); evaluation::kPaddingLabel: not scored
    std::int64_t classes = 0;
};

/// The predictions of an ensemble by both kinds of vote, with the same labels.
struct VotedProbabilities {
    Probabilities soft;
    Probabilities majority;
    bool uses_majority = false;  // bagging.aggregation, which selects aggregated()

    const Probabilities& aggregated() const { return uses_majority ? majority : soft; }
};

/// Returns the 95 % interval, by the bootstrap over samples, of the mean intersection over union of
/// `predicted` or, if `other` is not null, of `other` - `predicted`. Nothing if no cell is scored.
std::optional<evaluation::Interval> cell_interval_95(const Probabilities& predicted,
                                                     std::int64_t cells_per_sample,
                                                     const Probabilities* other);

}  // namespace hpcai::workloads
