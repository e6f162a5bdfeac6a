// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hpcai/device/sync_batch_norm_reducer.hpp>

#include "context.hpp"
#include "owned.hpp"

namespace hpcai::device::cuda {

/// Two numbers a channel of a BatchNorm, which become their sums over the ranks that take its
/// statistics together. The sums are made on the host, which waits for the stream and for the other
/// ranks, so that none of it can be recorded. Nothing where there is one rank.
class SyncBatchNormSums {
public:
    /// `sum`, over `ranks` ranks where they are several, outlives it.
    SyncBatchNormSums(SyncBatchNormReducer* sum, std::int64_t ranks, std::int64_t channels,
                      const Context& context);

    int ranks() const { return ranks_; }
    /// In device memory, 16-byte aligned.
    std::size_t bytes() const;
    void bind(void* memory);

    double* values() const { return values_; }             // (2, C)
    float* coefficients() const { return coefficients_; }  // (3, C), of whoever reads values()

    /// In place. Throw as SyncBatchNormReducer, or Error(internal) when earlier work has failed.
    void sum_values() const;
    /// Into values(), of (C) each.
    void sum(const float* first, const float* second) const;

private:
    std::size_t value_bytes() const { return 2 * channels_ * sizeof(double); }
    std::span<double> on_host() const;
    void download(void* to, const void* from, std::size_t bytes) const;
    void sum_and_upload() const;

    SyncBatchNormReducer* sum_;
    int ranks_;
    std::size_t channels_;
    const Context& context_;
    double* values_ = nullptr;
    float* coefficients_ = nullptr;
    PinnedBytes host_;
};

}  // namespace hpcai::device::cuda
