// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

/// Formats numbers for people to read. A number that is not finite becomes "n/a".
namespace hpcai {

/// Binary prefixes, three significant digits, four from 1000 to 1023: "512 B", "97.5 MiB".
std::string format_bytes(std::uint64_t bytes);

/// Three significant digits from 1e-9 to 1e21, with decimal prefixes n to E: "1.23 TFLOPS".
std::string format_si(double value, std::string_view unit);

/// "45.0 us", "4.56 ms", "12.3 s", "3 min 05 s", "2 h 07 min", "3 d 04 h".
std::string format_seconds(double seconds);

/// `fraction` 0.1234 is "12.3 %".
std::string format_percent(double fraction);

/// Groups of three digits, separated by spaces: "1 281 167".
std::string format_count(std::int64_t count);

/// "1 rank", "2 ranks", "1 024 batches": `noun` is singular with a regular plural.
std::string counted(std::int64_t count, std::string_view noun);

}  // namespace hpcai
