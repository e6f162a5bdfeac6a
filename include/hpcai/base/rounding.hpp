// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <type_traits>

namespace hpcai {

/// dividend / divisor, rounded up. The dividend is not negative, the divisor is positive.
template <std::integral Integer>
constexpr Integer ceil_div(Integer dividend, std::type_identity_t<Integer> divisor) {
    return (dividend + divisor - 1) / divisor;
}

/// The smallest multiple of `alignment` that is not below `value`, which is not negative.
template <std::integral Integer>
constexpr Integer align_up(Integer value, std::type_identity_t<Integer> alignment) {
    return ceil_div(value, alignment) * alignment;
}

}  // namespace hpcai
