// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/error.hpp>

#include "kernels/batch_norm.hpp"

#include "layout.hpp"

namespace hpcai::device::cuda {

/// Returns statistics whose four arrays, of `bytes` each, follow each other from `memory`.
inline kernels::BatchNormStatistics statistics_at(void* memory, std::size_t bytes) {
    return {array_at(memory, 0, bytes), array_at(memory, 1, bytes), array_at(memory, 2, bytes),
            array_at(memory, 3, bytes)};
}

/// Computes the statistics from x or, with op.from_sums, from the sums that follow x.
inline void compute_batch_statistics(const ops::BatchNorm& op, const kernels::BatchNormShape& shape,
                                     const kernels::BatchNormStatisticsArguments& arguments,
                                     cudaStream_t stream) {
    if (!op.from_sums) return kernels::batch_norm_statistics(shape, arguments, stream);
    const Sums sums = sums_of(const_cast<void*>(arguments.x), storage_bytes(op.input, shape.dtype),
                              shape.channels);
    kernels::batch_norm_statistics_from_sums(
        shape, {sums.sum, sums.squares, arguments.parameters, arguments.statistics}, stream);
}

/// A BatchNorm in training that is part of a fused operation. It has the statistics of the whole
/// batch and no padding channels.
class WholeBatchNorm {
public:
    WholeBatchNorm(const ops::BatchNorm& op, DType dtype) : op_(op) {
        ensure(op.statistics_samples == 0 || op.statistics_samples == op.input[0],
               "a fused BatchNorm cannot have statistics over {} of {} samples",
               op.statistics_samples, op.input[0]);
        ensure(stored_channels(op.input[3]) == op.input[3],
               "a fused BatchNorm cannot have padding after {} channels", op.input[3]);
        shape_ = {.dtype = dtype,
                  .spans = 1,
                  .pixels = op.input[0] * op.input[1] * op.input[2],
                  .channels = op.input[3]};
    }

    const kernels::BatchNormShape& shape() const { return shape_; }
    std::size_t saved_bytes() const { return 4 * array_bytes(shape_.channels); }

    /// Sets the memory; `saved` has saved_bytes(). Ignores epsilon and momentum of `parameters`.
    void bind(void* x, const kernels::BatchNormParameters& parameters, void* saved) {
        parameters_ = parameters;
        parameters_.epsilon = op_.epsilon;
        parameters_.momentum = op_.momentum;
        x_ = x;
        statistics_ = statistics_at(saved, array_bytes(shape_.channels));
    }
    const void* x() const { return x_; }
    const float* gamma() const { return parameters_.gamma; }
    const kernels::BatchNormParameters& parameters() const { return parameters_; }
    const kernels::BatchNormStatistics& statistics() const { return statistics_; }

    void compute_statistics(void* workspace, cudaStream_t stream) const {
        compute_batch_statistics(op_, shape_, {x_, parameters_, statistics_, workspace}, stream);
    }

private:
    ops::BatchNorm op_;
    kernels::BatchNormShape shape_;
    kernels::BatchNormParameters parameters_;
    kernels::BatchNormStatistics statistics_;
    void* x_ = nullptr;
};

}  // namespace hpcai::device::cuda
