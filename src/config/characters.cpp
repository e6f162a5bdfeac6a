// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>

#include "document.hpp"

namespace hpcai::config {
namespace {

unsigned byte(std::string_view text, std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
}

/// C0, DEL, and C1 (U+0080 to U+009F), which some terminals obey.
bool is_control(std::string_view text, std::size_t i) {
    const unsigned first = byte(text, i);
    return first < 0x20 || first == 0x7F || (first == 0xC2 && byte(text, i + 1) < 0xA0);
}

bool is_line_end(std::string_view text, std::size_t i) {
    return text[i] == '\n' || (text[i] == '\r' && byte(text, i + 1) == '\n');
}

}  // namespace

std::string Origin::at(Place place) const {
    return has_lines_ ? fmt::format("{}:{}:{}", name_, place.line, place.column) : name_;
}

void check_characters(std::string_view text, const Origin& origin) {
    Place place;
    for (std::size_t i = 0; i < text.size();) {
        const std::size_t bytes = utf8_character_bytes(text.substr(i));
        const unsigned first = byte(text, i);
        require(bytes > 0, ExitCode::usage, "{}: expected UTF-8 text, got the byte 0x{:02x}",
                origin.at(place), first);
        require(text[i] != '\t', ExitCode::usage, "{}: expected spaces, got a tab",
                origin.at(place));
        require(!is_control(text, i) || is_line_end(text, i), ExitCode::usage,
                "{}: expected text, got the control character {}", origin.at(place),
                in_quotes(text.substr(i, bytes)));
        place.column += static_cast<int>(bytes);
        if (text[i] == '\n') place = {place.line + 1, 1};
        i += bytes;
    }
}

std::string shown(std::string_view text) {
    constexpr std::size_t kShown = 64;
    std::string result;
    std::size_t i = 0;
    while (i < text.size()) {
        const std::size_t bytes = utf8_character_bytes(text.substr(i));
        if (i + bytes > kShown) break;
        if (bytes == 0 || is_control(text, i)) {
            for (std::size_t k = 0; k < std::max<std::size_t>(bytes, 1); ++k) {
                result += fmt::format("\\x{:02x}", byte(text, i + k));
            }
        } else {
            result += text.substr(i, bytes);
        }
        i += bytes == 0 ? 1 : bytes;
    }
    return i < text.size() ? result + "..." : result;
}

std::string in_quotes(std::string_view text) {
    return fmt::format("'{}'", shown(text));
}

}  // namespace hpcai::config
