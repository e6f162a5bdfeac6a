// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace hpcai {

/// A number, or the reason why there is none. `reason` is empty when there is a value.
struct Quantity {
    std::optional<double> value;
    std::string reason;
    bool operator==(const Quantity&) const = default;
};

}  // namespace hpcai
