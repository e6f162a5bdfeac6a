// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/core.h>

#include <hpcai/base/units.hpp>
#include <hpcai/records/record_fields.hpp>

/// Formatting for texts and pages.
namespace hpcai::report {

/// `text` with its control characters replaced by spaces, so that it cannot add a line.
inline std::string one_line(std::string_view text) {
    std::string result(text);
    std::ranges::replace_if(
        result,
        [](char letter) { return static_cast<unsigned char>(letter) < 32 || letter == 127; }, ' ');
    return result;
}

constexpr std::size_t kPageWidth = 80;

/// A text that is built line by line, without trailing blanks.
class Page {
public:
    /// Adds "name : text", with lines of at most kPageWidth columns if no word is longer.
    template <typename... Arguments>
    void entry(std::string_view name, fmt::format_string<Arguments...> format,
               Arguments&&... arguments) {
        std::string rest = fmt::format("{:<20}: ", name);
        const std::size_t indent = rest.size();
        rest += fmt::format(format, std::forward<Arguments>(arguments)...);
        while (rest.size() > kPageWidth) {
            const std::size_t comma = rest.rfind(", ", kPageWidth - 1);
            const bool has_late_comma = comma != std::string::npos && comma > kPageWidth - 20;
            std::size_t blank = has_late_comma ? comma + 1 : rest.rfind(' ', kPageWidth);
            if (blank == std::string::npos || blank < indent) blank = rest.find(' ', kPageWidth);
            if (blank == std::string::npos) break;
            line("{}", rest.substr(0, blank));
            rest = std::string(indent, ' ') + rest.substr(blank + 1);
        }
        line("{}", rest);
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

/// Returns true if there is a finite value.
inline bool is_finite(const Quantity& quantity) {
    return quantity.value && std::isfinite(*quantity.value);
}

/// The value in the fmt `format`, or "n/a".
inline std::string number(const Quantity& quantity, std::string_view format) {
    return is_finite(quantity) ? fmt::format(fmt::runtime(format), *quantity.value) : "n/a";
}

/// "1.23 TFLOPS", or "n/a".
inline std::string human_flops(const Quantity& quantity) {
    return is_finite(quantity) ? format_si(*quantity.value, "FLOPS") : "n/a";
}

inline std::string flops_text(const Quantity& quantity) {
    return number(quantity, "{:.3e}");
}

/// format_bytes(), where a negative count becomes 0.
inline std::string bytes_text(std::int64_t bytes) {
    return format_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0)));
}

inline std::string quality_text(const Quantity& quantity) {
    return number(quantity, "{:.4f}");
}

}  // namespace hpcai::report
