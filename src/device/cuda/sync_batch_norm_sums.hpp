// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <hpcai/device/sync_batch_norm_reducer.hpp>

#include "context.hpp"
#include "owned.hpp"

namespace hpcai::device::cuda {

/// Two numbers for each channel of a BatchNorm, which are summed over the ranks that share its
/// statistics. The host forms the sums and waits for the stream and the other ranks, so this work
/// cannot be recorded. With one rank it has no memory, and nothing may be summed.
class SyncBatchNormSums {
public:
    /// `sum` reduces over `ranks` ranks if there are several, and outlives the object.
    SyncBatchNormSums(SyncBatchNormReducer* sum, std::int64_t ranks, std::int64_t channels,
                      const Context& context);

    int ranks() const { return ranks_; }
    /// Bytes of device memory, 16-byte aligned, that bind() takes.
    std::size_t bytes() const;
    void bind(void* memory);

    double* values() const { return values_; }             // (2, C)
    float* coefficients() const { return coefficients_; }  // (3, C), scratch for the caller

    /// Sums values() over the ranks. Throws as SyncBatchNormReducer does, and Error(internal) when
    /// earlier work has failed.
    void sum_values() const;
    /// Writes the sums over ranks of `first` and `second`, (C) each, to values(). Throws likewise.
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
