// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpcai::kernels {

/// A bump allocator for the arrays of a workspace, which begin at multiples of 256 bytes. Without
/// memory it only counts bytes.
class Scratch {
public:
    explicit Scratch(void* base = nullptr) : base_(static_cast<std::byte*>(base)) {}

    template <typename T>
    T* take(std::int64_t count) {
        std::byte* at = base_ == nullptr ? nullptr : base_ + bytes_;
        bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
        return reinterpret_cast<T*>(at);
    }
    std::size_t bytes() const { return bytes_; }

private:
    std::byte* base_;
    std::size_t bytes_ = 0;
};

}  // namespace hpcai::kernels
