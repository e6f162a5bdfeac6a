// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <hpcai/base/error.hpp>

#include "kernels/cast.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::int64_t kChunkValues = std::int64_t{2} << 20;  // 8 MiB of fp32
constexpr std::int64_t kAlignedRows = 16;  // each chunk begins at a multiple of 16 bytes

kernels::PaddedRows rows_of(const Shape& shape, DType dtype) {
    const std::int64_t channels = shape[shape.rank() - 1];
    const std::int64_t stored = stored_shape(shape)[shape.rank() - 1];
    if (channels == stored) {  // no padding: a chunk may end at any value
        return {.dtype = dtype, .rows = shape.elements(), .channels = 1, .padded_channels = 1};
    }
    return {.dtype = dtype,
            .rows = shape.elements() / channels,
            .channels = static_cast<int>(channels),
            .padded_channels = static_cast<int>(stored)};
}

}  // namespace

void store_values(std::span<const float> values, const StoredTensor& to, Transfers& transfers,
                  cudaStream_t stream) {
    ensure(is_floating(to.dtype), "the CUDA engine stores values in f32, f16 or bf16, not {}",
           name_of(to.dtype));
    ensure(to.shape.rank() == 1 || to.shape.rank() == 2 || to.shape.rank() == 4,
           "the CUDA engine stores values of 1, 2 or 4 dimensions, not {}", to_string(to.shape));
    ensure(values.size() == static_cast<std::size_t>(to.shape.elements()),
           "{} values do not match shape {}", values.size(), to_string(to.shape));
    if (values.empty()) return;
    const kernels::PaddedRows all = rows_of(to.shape, to.dtype);
    const std::int64_t chunk_rows =
        std::min(all.rows, (kChunkValues / all.channels / kAlignedRows + 1) * kAlignedRows);
    const DeviceBytes buffer(static_cast<std::size_t>(chunk_rows * all.channels) * sizeof(float));
    auto* target = static_cast<std::byte*>(to.data);
    for (std::int64_t row = 0; row < all.rows; row += chunk_rows) {
        kernels::PaddedRows piece = all;
        piece.rows = std::min(chunk_rows, all.rows - row);
        const auto chunk_values = static_cast<std::size_t>(piece.rows * piece.channels);
        transfers.upload(buffer.data(), std::as_bytes(values.first(chunk_values)));
        kernels::pad_rows(piece, DType::f32, buffer.data(), target, stream);
        values = values.subspan(chunk_values);
        target += static_cast<std::size_t>(piece.rows * piece.padded_channels) * size_of(to.dtype);
    }
    check(cudaStreamSynchronize(stream), "waiting for the device");
}

}  // namespace hpcai::device::cuda
