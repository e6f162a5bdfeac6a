// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>

namespace hpcai {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

/// Controls of the text direction are U+200E, U+200F, U+202A to U+202E and U+2066 to U+2069.
bool changes_direction(std::string_view character) {
    const bool is_mark =
        character.starts_with("\xE2\x80") && (character[2] == '\x8E' || character[2] == '\x8F' ||
                                              (character[2] >= '\xAA' && character[2] <= '\xAE'));
    const bool is_isolate =
        character.starts_with("\xE2\x81") && character[2] >= '\xA6' && character[2] <= '\xA9';
    return is_mark || is_isolate;
}

std::string_view escape_html_character(std::string_view character) {
    static constexpr std::array<std::pair<char, std::string_view>, 5> kEscapes{
        {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
    if (character == "\n" || character == "\t") return character;
    const bool is_noncharacter = character == "\xEF\xBF\xBE" || character == "\xEF\xBF\xBF";
    if (is_noncharacter || is_control(character) || changes_direction(character))
        return kReplacement;
    const auto* row =
        std::ranges::find(kEscapes, character[0], &std::pair<char, std::string_view>::first);
    return row == kEscapes.end() ? character : row->second;
}

}  // namespace

std::string printable(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    while (!text.empty()) {
        const std::size_t bytes = utf8_character_bytes(text);
        const std::string_view character = text.substr(0, std::max<std::size_t>(bytes, 1));
        if (character == "\n" || character == "\t") {
            safe += character == "\n" ? "\\n" : "\\t";
        } else if (bytes == 0 || is_control(character)) {
            for (const char byte : character) {
                safe += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
            }
        } else {
            safe += character;
        }
        text.remove_prefix(character.size());
    }
    return safe;
}

std::string shell_quote(std::string_view argument) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+@%-";
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) {
        return std::string(argument);
    }
    std::string word = "'";
    for (const char byte : argument) word += byte == '\'' ? "'\\''" : std::string(1, byte);
    return word + "'";
}

std::string escape_html(std::string_view text) {
    std::string html;
    while (!text.empty()) {
        const std::size_t bytes = utf8_character_bytes(text);
        html += bytes == 0 ? kReplacement : escape_html_character(text.substr(0, bytes));
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return html;
}

std::string wrap(std::string_view text, std::size_t indent, std::string_view line_end) {
    constexpr std::size_t kMaxUnused = 20;  // empty columns after a comma that ends a line
    const std::size_t width = kPageWidth + 1 - line_end.size();
    std::string lines;
    std::size_t used = 0;  // columns of the indentation
    while (used + text.size() > width) {
        const std::size_t room = width - used;
        const std::string_view line = text.substr(0, room + 1);
        const std::size_t comma = line.rfind(", ", room - 1);
        const bool has_late_comma = comma != line.npos && comma + kMaxUnused > room;
        std::size_t blank = has_late_comma ? comma + 1 : line.rfind(' ');
        if (blank == line.npos) blank = text.find(' ', room);
        if (blank == text.npos) break;
        lines.append(used, ' ').append(text.substr(0, blank)).append(line_end);
        text.remove_prefix(blank + 1);
        used = indent;
    }
    return lines.append(used, ' ').append(text);
}

std::string wrap_command(const std::string& text, std::size_t indent) {
    return text.find('\'') == text.npos ? wrap(text, indent, " \\\n") : text;
}

std::size_t utf8_character_bytes(std::string_view text) {
    const auto byte = [&](std::size_t index) -> unsigned {
        return index < text.size() ? static_cast<unsigned char>(text[index]) : 0;
    };
    const unsigned first = byte(0);
    if (first < 0x80) return text.empty() ? 0 : 1;
    const std::size_t bytes = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    if (bytes == 0 || first > 0xF4) return 0;
    for (std::size_t index = 1; index < bytes; ++index) {
        if ((byte(index) & 0xC0) != 0x80) return 0;
    }
    const unsigned second = byte(1);
    const bool is_overlong = (first == 0xE0 && second < 0xA0) || (first == 0xF0 && second < 0x90);
    const bool is_surrogate = first == 0xED && second > 0x9F;
    const bool is_too_large = first == 0xF4 && second > 0x8F;
    return is_overlong || is_surrogate || is_too_large ? 0 : bytes;
}

bool is_control(std::string_view character) {
    const auto first = static_cast<unsigned char>(character[0]);
    return first < 0x20 || first == 0x7F || (first == 0xC2 && character[1] < '\xA0');
}

}  // namespace hpcai
