// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

namespace hpcai {

/// Returns dividend / divisor, rounded up, for dividend >= 0 and divisor > 0.
template <std::integral Integer>
constexpr Integer ceil_div(Integer dividend, std::type_identity_t<Integer> divisor) {
    return dividend / divisor + (dividend % divisor == 0 ? 0 : 1);
}

/// Returns the smallest multiple of `alignment` that is at least `value`, for value >= 0.
template <std::integral Integer>
constexpr Integer align_up(Integer value, std::type_identity_t<Integer> alignment) {
    return ceil_div(value, alignment) * alignment;
}

}  // namespace hpcai
