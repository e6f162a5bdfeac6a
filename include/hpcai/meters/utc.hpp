// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include <hpcai/base/clock.hpp>

namespace hpcai::meters {

/// A monotonic clock in UTC seconds since 1970. The system clock sets it at construction.
class UtcClock {
public:
    UtcClock();
    double seconds() const { return start_ + watch_.seconds(); }

private:
    double start_;
    Stopwatch watch_;
};

/// Returns "2022-11-05T14:03:09.250Z" (ISO 8601), truncated to milliseconds, or "" outside the
/// years 1970 to 9999.
std::string utc_text(double utc_seconds);

/// Parses the format of utc_text(), with any number of fractional digits, or seconds since 1970.
/// Returns nullopt for any other text.
std::optional<double> parse_utc(std::string_view text);

}  // namespace hpcai::meters
