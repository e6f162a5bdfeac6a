// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <hpcai/records/record_fields.hpp>

/// What texts and pages are made of.
namespace hpcai::report {

/// `text` with spaces in place of control characters, so that none can fake a line.
inline std::string one_line(std::string_view text) {
    std::string result(text);
    std::ranges::replace_if(
        result,
        [](char letter) { return static_cast<unsigned char>(letter) < 32 || letter == 127; }, ' ');
    return result;
}

/// A text that grows at its end, line by line, without blanks at their ends.
class Page {
public:
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

/// True where there is a value and it is finite.
bool is_finite(const Quantity& quantity);

/// The number, printed as `format` (of fmt) describes, or "n/a".
std::string number(const Quantity& quantity, std::string_view format);

/// FLOPS with three digits after the point, in exponential notation.
std::string flops_text(const Quantity& quantity);

/// Bytes for people; a negative count is none.
std::string bytes_text(std::int64_t bytes);

/// A quality with four digits after the point.
std::string quality_text(const Quantity& quantity);

}  // namespace hpcai::report
