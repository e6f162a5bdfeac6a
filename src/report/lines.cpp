// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>

namespace hpcai::report {

bool is_finite(const Quantity& quantity) {
    return quantity.value && std::isfinite(*quantity.value);
}

std::string number(const Quantity& quantity, std::string_view format) {
    if (!is_finite(quantity)) return "n/a";
    return fmt::format(fmt::runtime(format), *quantity.value);
}

std::string flops_text(const Quantity& quantity) {
    return number(quantity, "{:.3e}");
}

std::string bytes_text(std::int64_t bytes) {
    return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

std::string quality_text(const Quantity& quantity) {
    return number(quantity, "{:.4f}");
}

}  // namespace hpcai::report
