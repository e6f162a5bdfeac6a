// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace hpcai::tensor {

/// The extents of a tensor, at most five, outermost first. Images are (N, H, W, C) and filters (K,
/// R, S, C) with K output channels, also if the device stores them in another layout.
class Shape {
public:
    static constexpr std::size_t kMaxRank = 5;

    Shape() = default;
    /// Throws Error(internal) for more than kMaxRank extents or a negative one.
    Shape(std::initializer_list<std::int64_t> extents);

    std::size_t rank() const noexcept { return rank_; }
    std::int64_t operator[](std::size_t axis) const { return extents_[axis]; }
    std::int64_t& operator[](std::size_t axis) { return extents_[axis]; }
    /// Product of the extents; 1 for rank 0.
    std::int64_t elements() const noexcept;
    bool operator==(const Shape& other) const = default;

    const std::int64_t* begin() const noexcept { return extents_.data(); }
    const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

private:
    std::array<std::int64_t, kMaxRank> extents_{};  // zeros after the first rank_
    std::size_t rank_ = 0;
};

/// Returns "(32, 56, 56, 64)".
std::string to_string(const Shape& shape);

}  // namespace hpcai::tensor
