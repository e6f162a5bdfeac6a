// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

namespace hpcai {

/// dividend / divisor, rounded up. The dividend must not be negative, the divisor must be positive.
/// Kernels have their own ceil_div in kernels/elements.cuh.
template <std::integral Integer>
constexpr Integer ceil_div(Integer dividend, std::type_identity_t<Integer> divisor) {
    return dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
}

/// The smallest multiple of `alignment` that is not below `value`, which is not negative.
template <std::integral Integer>
constexpr Integer align_up(Integer value, std::type_identity_t<Integer> alignment) {
    return ceil_div(value, alignment) * alignment;
}

}  // namespace hpcai
