// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <algorithm>

#include <hpcai/base/error.hpp>

#include "kernels/cast.hpp"

namespace hpcai::device::cuda {
namespace {

constexpr std::int64_t kValuesAtOnce = std::int64_t{2} << 20;
constexpr std::int64_t kAlignedRows = 16;  // parts have a multiple, so they begin aligned

kernels::PaddedRows rows_of(const Shape& shape, DType dtype) {
    const std::int64_t channels = shape[shape.rank() - 1];
    const std::int64_t stored = stored_shape(shape)[shape.rank() - 1];
    if (channels == stored) {
        return {.dtype = dtype, .rows = shape.elements(), .channels = 1, .padded_channels = 1};
    }
    return {.dtype = dtype,
            .rows = shape.elements() / channels,
            .channels = static_cast<int>(channels),
            .padded_channels = static_cast<int>(stored)};
}

void store_rows(const kernels::PaddedRows& rows, const float* from, void* to, cudaStream_t stream) {
    if (rows.channels == rows.padded_channels) {
        return kernels::cast_from_f32(from, rows.dtype, to, rows.rows * rows.channels, stream);
    }
    kernels::pad_channels(rows, from, to, stream);
}

}  // namespace

void check_values(std::size_t values, const Shape& shape, DType dtype) {
    ensure(is_floating(dtype), "the CUDA engine keeps no values in {}", name_of(dtype));
    ensure(shape.rank() == 1 || shape.rank() == 2 || shape.rank() == 4, "no layout for shape {}",
           to_string(shape));
    ensure(values == static_cast<std::size_t>(shape.elements()), "{} values do not match shape {}",
           values, to_string(shape));
}

void store_values(std::span<const float> values, const Place& to, Transfers& transfers,
                  cudaStream_t stream) {
    if (values.empty()) return;
    const kernels::PaddedRows all = rows_of(to.shape, to.dtype);
    const std::int64_t rows_at_once =
        std::min(all.rows, (kValuesAtOnce / all.channels / kAlignedRows + 1) * kAlignedRows);
    const DeviceBytes numbers(static_cast<std::size_t>(rows_at_once * all.channels) *
                              sizeof(float));
    auto* target = static_cast<std::byte*>(to.data);
    for (std::int64_t row = 0; row < all.rows; row += rows_at_once) {
        kernels::PaddedRows part = all;
        part.rows = std::min(rows_at_once, all.rows - row);
        const auto count = static_cast<std::size_t>(part.rows * part.channels);
        transfers.upload(numbers.data(), std::as_bytes(values.first(count)));
        store_rows(part, static_cast<const float*>(numbers.data()), target, stream);
        values = values.subspan(count);
        target += static_cast<std::size_t>(part.rows * part.padded_channels) * size_of(to.dtype);
    }
    check(cudaStreamSynchronize(stream), "waiting for the device");
}

}  // namespace hpcai::device::cuda
