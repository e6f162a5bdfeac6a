// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace hpcai::device {

/// All-reduces the statistics of SyncBatchNorm over the ranks that share them
/// (ops::BatchNorm::statistics_samples). Not thread-safe.
class SyncBatchNormReducer {
public:
    virtual ~SyncBatchNormReducer() = default;

    /// The number of ranks that share statistics, including this one.
    virtual int ranks() const = 0;

    /// Sums `values` in place, with the same bits on all ranks. Collective: all ranks must call in
    /// the same order. Throws Error when another rank does not respond or has failed.
    virtual void sum(std::span<double> values) = 0;
};

}  // namespace hpcai::device
