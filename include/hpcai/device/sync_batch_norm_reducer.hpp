// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace hpcai::device {

/// Sums over the ranks that take the statistics of a BatchNorm together
/// (ops::BatchNorm::statistics_samples). One thread uses it.
class SyncBatchNormReducer {
public:
    virtual ~SyncBatchNormReducer() = default;

    /// How many, this one among them.
    virtual int ranks() const = 0;

    /// In place, to the same bits on all of them, which make the same calls in the same order.
    /// Throws Error when the others do not answer or one of them has failed.
    virtual void sum(std::span<double> values) = 0;
};

}  // namespace hpcai::device
