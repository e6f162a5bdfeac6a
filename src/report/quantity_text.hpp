// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <hpcai/records/quantity.hpp>

/// Quantities as summary, page and status print them.
namespace hpcai::report {

/// True where there is a value and it is finite.
bool is_finite(const Quantity& quantity);

/// The number, printed as `format` (of fmt) describes, or "n/a".
std::string number(const Quantity& quantity, std::string_view format);

/// FLOPS with three digits after the point, in exponential notation.
std::string flops_text(const Quantity& quantity);

/// A quality with four digits after the point.
std::string quality_text(const Quantity& quantity);

}  // namespace hpcai::report
