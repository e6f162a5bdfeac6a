// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/tensor/shape.hpp>

namespace hpcai::tensor {

Shape::Shape(std::initializer_list<std::int64_t> extents) : rank_(extents.size()) {
    ensure(rank_ <= kMaxRank, "expected a shape of rank 0 to {}, got rank {}", kMaxRank, rank_);
    std::copy(extents.begin(), extents.end(), extents_.begin());
    ensure(std::all_of(begin(), end(), [](std::int64_t extent) { return extent >= 0; }),
           "expected extents of at least 0, got {}", to_string(*this));
}

std::int64_t Shape::elements() const noexcept {
    return std::accumulate(begin(), end(), std::int64_t{1}, std::multiplies<>());
}

std::string to_string(const Shape& shape) {
    return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

}  // namespace hpcai::tensor
