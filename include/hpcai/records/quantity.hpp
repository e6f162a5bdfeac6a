// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

namespace hpcai {

/// A number, or the reason why there is none. `reason` is empty when there is a value.
struct Quantity {
    std::optional<double> value;
    std::string reason;
    bool operator==(const Quantity&) const = default;
};

/// What has no value, because `reason`.
inline Quantity nothing(std::string reason) {
    return {std::nullopt, std::move(reason)};
}

/// `value`, or `reason` where there is none.
inline Quantity or_reason(std::optional<double> value, const std::string& reason) {
    return value ? Quantity{value, ""} : nothing(reason);
}

}  // namespace hpcai
