// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/records/record_fields.hpp>

/// Formatting for texts and pages.
namespace hpcai::report {

/// Returns `text` with spaces in place of control characters, so that it cannot add a line.
inline std::string one_line(std::string_view text) {
    std::string result(text);
    std::ranges::replace_if(
        result,
        [](char letter) { return static_cast<unsigned char>(letter) < 32 || letter == 127; }, ' ');
    return result;
}

/// A text that is built line by line, without trailing blanks.
class TextPage {
public:
    /// Adds "name : text", with lines of at most kPageWidth columns if no word is longer.
    template <typename... Arguments>
    void entry(std::string_view name, fmt::format_string<Arguments...> format,
               Arguments&&... arguments) {
        wrapped(22, "{:<20}: {}", name, fmt::format(format, std::forward<Arguments>(arguments)...));
    }

    /// Adds a line that wrap() breaks.
    template <typename... Arguments>
    void wrapped(std::size_t indent, fmt::format_string<Arguments...> format,
                 Arguments&&... arguments) {
        line("{}", wrap(fmt::format(format, std::forward<Arguments>(arguments)...), indent));
    }

    template <typename... Arguments>
    void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
        text_.erase(text_.find_last_not_of(' ') + 1);
        text_ += '\n';
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

inline bool is_finite(const Quantity& quantity) {
    return quantity.value && std::isfinite(*quantity.value);
}

/// Returns the value in the fmt `format`, or "n/a".
inline std::string number(const Quantity& quantity, std::string_view format) {
    return is_finite(quantity) ? fmt::format(fmt::runtime(format), *quantity.value) : "n/a";
}

inline std::string flops_text(const Quantity& quantity) {
    return number(quantity, "{:.3e}");
}

/// Returns "1.23 TFLOPS", "1.230e-16 FLOPS" for a number below all prefixes, or "n/a".
inline std::string human_flops(const Quantity& quantity) {
    if (!is_finite(quantity)) return "n/a";
    const bool is_tiny = *quantity.value != 0 && std::abs(*quantity.value) < 1e-9;
    return is_tiny ? flops_text(quantity) + " FLOPS" : format_si(*quantity.value, "FLOPS");
}

/// Returns format_bytes(), with 0 for a negative number.
inline std::string bytes_text(std::int64_t bytes) {
    return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

/// Returns the name of a ledger for readers; for table3, the source of its counts.
inline std::string ledger_text(std::string_view name) {
    return name == "table3" ? "Table 3 of the paper" : one_line(name);
}

inline std::string quality_text(const Quantity& quantity) {
    return number(quantity, "{:.4f}");
}

}  // namespace hpcai::report
