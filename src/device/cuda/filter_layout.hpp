// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cast.hpp"

#include "cudnn_choice.hpp"
#include "layout.hpp"

namespace hpcai::device::cuda {

/// Converts between the fp32 master weights (K, R, R, C) and the filters for cuDNN. The latter have
/// the compute type, padding filters and channels and, for pairs of pixels, zeros around the taps.
class FilterLayout {
public:
    FilterLayout() = default;
    FilterLayout(const ops::Convolution& op, const ConvolutionShape& shape)
        : rows_(rows_of(op, shape)),
          bytes_(bytes_of(Operand::filters, shape)),
          uses_masters_(shape.dtype == DType::f32 && !is_padded() && shape.filters == op.filters) {}

    /// Bytes of a copy; 0 if cuDNN reads the master weights directly.
    std::size_t copy_bytes() const { return uses_masters_ ? 0 : rounded_up(bytes_); }

    /// Whether a copy has the elements of the master weights in order, perhaps followed by zeros.
    bool is_plain_copy() const { return !uses_masters_ && !is_padded(); }

    /// Enqueues the conversion of the master weights to the filters for cuDNN.
    void update_copy(const float* weights, void* copy, const Context& context) const {
        if (uses_masters_) return;
        const std::size_t filled =
            static_cast<std::size_t>(rows_.padded_elements()) * size_of(rows_.dtype);
        if (is_padded()) {
            kernels::pad_channels(rows_, weights, copy, context.stream);
        } else {
            kernels::cast_from_f32(weights, rows_.dtype, copy, elements(), context.stream);
        }
        if (filled == bytes_) return;
        check(cudaMemsetAsync(static_cast<std::byte*>(copy) + filled, 0, bytes_ - filled,
                              context.stream),
              "padding filters");
    }

    void store_gradient(const void* copy, float* gradient, const Context& context) const {
        if (uses_masters_) return;
        if (is_padded()) {
            kernels::strip_channels(rows_, copy, gradient, context.stream);
        } else {
            kernels::cast_to_f32(rows_.dtype, copy, gradient, elements(), context.stream);
        }
    }

private:
    static kernels::PaddedRows rows_of(const ops::Convolution& op, const ConvolutionShape& shape) {
        kernels::PaddedRows rows{.dtype = shape.dtype,
                                 .rows = op.filters * op.kernel,
                                 .columns = static_cast<int>(op.kernel),
                                 .padded_columns = static_cast<int>(shape.kernel_width()),
                                 .channels = static_cast<int>(op.input[3]),
                                 .padded_channels = static_cast<int>(shape.channels)};
        if (!shape.pairs) return rows;
        rows.padded_columns *= 2;
        rows.padded_channels /= 2;
        rows.first_column = static_cast<int>(2 * shape.padding_width() - shape.padding);
        return rows;
    }
    bool is_padded() const { return elements() != rows_.padded_elements(); }
    std::int64_t elements() const { return rows_.rows * rows_.columns * rows_.channels; }

    kernels::PaddedRows rows_;
    std::size_t bytes_ = 0;
    bool uses_masters_ = true;
};

}  // namespace hpcai::device::cuda
