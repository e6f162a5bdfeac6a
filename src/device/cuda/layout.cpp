// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <hpcai/base/error.hpp>

#include "kernels/host_numbers.hpp"

namespace hpcai::device::cuda {
namespace {

/// Calls body(index among the values, index in memory) for every value.
template <typename Body>
void for_each_value(const Shape& shape, const Body& body) {
    const std::int64_t channels = shape[shape.rank() - 1];
    const std::int64_t stored = stored_shape(shape)[shape.rank() - 1];
    const std::int64_t rows = channels == 0 ? 0 : shape.elements() / channels;
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t c = 0; c < channels; ++c) body(row * channels + c, row * stored + c);
    }
}

}  // namespace

void check_values(std::size_t values, const Shape& shape, DType dtype) {
    ensure(is_floating(dtype), "the CUDA engine keeps no values in {}", name_of(dtype));
    ensure(shape.rank() == 1 || shape.rank() == 2 || shape.rank() == 4, "no layout for shape {}",
           to_string(shape));
    ensure(values == static_cast<std::size_t>(shape.elements()), "{} values for shape {}", values,
           to_string(shape));
}

std::vector<std::byte> to_stored(std::span<const float> values, const Shape& shape, DType dtype) {
    std::vector<std::byte> stored(storage_bytes(stored_shape(shape), dtype));
    for_each_value(shape, [&](std::int64_t value, std::int64_t at) {
        kernels::reference::put(dtype, stored.data(), at, values[static_cast<std::size_t>(value)]);
    });
    return stored;
}

void from_stored(std::span<const std::byte> stored, const Shape& shape, DType dtype,
                 std::span<float> values) {
    for_each_value(shape, [&](std::int64_t value, std::int64_t at) {
        values[static_cast<std::size_t>(value)] =
            static_cast<float>(kernels::reference::get(dtype, stored.data(), at));
    });
}

}  // namespace hpcai::device::cuda
