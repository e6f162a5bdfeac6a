// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <hpcai/base/clock.hpp>

namespace hpcai::meters {

/// Seconds since 1970 in UTC by the machine's clock as it stood at the construction; from then on
/// it never steps back.
class UtcClock {
public:
    UtcClock();
    double seconds() const { return began_ + watch_.seconds(); }

private:
    double began_;
    Stopwatch watch_;
};

/// "2022-11-05T14:03:09.250Z" (ISO 8601), cut to milliseconds; empty outside of the years 1970 to
/// 9999.
std::string utc_text(double utc_seconds);

/// Reads such a text, with any digits of a second or none, or a number of seconds since 1970.
/// Returns nothing for any other text.
std::optional<double> parse_utc(std::string_view text);

}  // namespace hpcai::meters
