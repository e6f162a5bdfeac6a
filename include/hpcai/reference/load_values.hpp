// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/tensor/half.hpp>

namespace hpcai::device {

/// Device memory full of NaNs, with a guard after its end.
class Buffer {
public:
    Buffer(Device& device, std::size_t bytes)
        : device_(&device), bytes_(bytes), memory_(device.allocate(bytes + kGuard)) {
        device_->upload(memory_->data(), std::vector<std::byte>(bytes + kGuard, kPoison));
    }
    void* data() const { return memory_->data(); }
    bool guard_is_intact() const {
        std::vector<std::byte> guard(kGuard);
        device_->download(guard, static_cast<const std::byte*>(memory_->data()) + bytes_);
        return std::ranges::all_of(guard, [](auto byte) { return byte == kPoison; });
    }

private:
    static constexpr std::size_t kGuard = 256;
    static constexpr std::byte kPoison{0xff};
    Device* device_;
    std::size_t bytes_;
    std::unique_ptr<Memory> memory_;
};

/// Returns element `index` of numbers in f32, f16 or bf16.
inline float stored_number(std::span<const std::byte> numbers, tensor::DType dtype,
                           std::size_t index) {
    if (dtype == tensor::DType::f32) {
        float value = 0;
        std::memcpy(&value, numbers.data() + index * sizeof(value), sizeof(value));
        return value;
    }
    std::uint16_t half = 0;
    std::memcpy(&half, numbers.data() + index * sizeof(half), sizeof(half));
    return dtype == tensor::DType::f16 ? tensor::from_f16(half) : tensor::from_bf16(half);
}

/// Reads into `values` the value that the device stores at `from`, as (N, H, W, C), (N, C) or (C).
/// The layout does not depend on the type: each element's index, stored in fp32, reveals its place.
inline void load_channels_last(Device& device, std::span<float> values, const tensor::Shape& shape,
                               tensor::DType dtype, const void* from) {
    std::vector<float> numbers(static_cast<std::size_t>(shape.elements()));
    ensure(numbers.size() == values.size() && numbers.size() < std::size_t{1} << 24,
           "expected {} values, fewer than 2^24, got {}", numbers.size(), values.size());
    std::iota(numbers.begin(), numbers.end(), 1.0f);  // from 1, because padding is 0
    const auto memory = device.allocate(device.storage_bytes(shape, tensor::DType::f32));
    device.store_channels_last(memory->data(), shape, tensor::DType::f32, numbers);
    std::vector<float> places(memory->bytes() / sizeof(float));
    device.download(std::as_writable_bytes(std::span(places)), memory->data());
    std::vector<std::byte> stored(device.storage_bytes(shape, dtype));
    device.download(stored, from);
    for (std::size_t place = 0; place < places.size(); ++place) {
        if (places[place] == 0) continue;
        values[static_cast<std::size_t>(places[place]) - 1] = stored_number(stored, dtype, place);
    }
}

}  // namespace hpcai::device
