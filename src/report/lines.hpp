// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

/// What pages of text are made of.
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

}  // namespace hpcai::report
