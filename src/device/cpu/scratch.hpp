// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <hpcai/base/rounding.hpp>

namespace hpcai::device::cpu {

/// Cuts a kernel's memory into arrays that begin at cache lines. Without memory it counts.
class Scratch {
public:
    explicit Scratch(void* base = nullptr) : base_(static_cast<std::byte*>(base)) {}

    template <typename T>
    T* take(std::int64_t count) {
        std::byte* at = base_ == nullptr ? nullptr : base_ + bytes_;
        bytes_ += align_up(static_cast<std::size_t>(count) * sizeof(T), 64);
        return reinterpret_cast<T*>(at);
    }
    std::size_t bytes() const { return bytes_; }

private:
    std::byte* base_;
    std::size_t bytes_ = 0;
};

}  // namespace hpcai::device::cpu
