// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include <hpcai/base/html_text.hpp>
#include <hpcai/base/utf8.hpp>

namespace hpcai {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_control(std::string_view letter) {
    if (letter.size() == 1) {
        return (static_cast<unsigned char>(letter[0]) < 32 && letter[0] != '\n' &&
                letter[0] != '\t') ||
               letter[0] == 127;
    }
    if (letter.size() == 2) return letter[0] == '\xC2' && letter[1] < '\xA0';
    // U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: the direction of writing
    const bool marks =
        letter.starts_with("\xE2\x80") && (letter[2] == '\x8E' || letter[2] == '\x8F' ||
                                           (letter[2] >= '\xAA' && letter[2] <= '\xAE'));
    const bool isolates =
        letter.starts_with("\xE2\x81") && letter[2] >= '\xA6' && letter[2] <= '\xA9';
    return marks || isolates;
}

void add_escaped(std::string_view letter, std::string& html) {
    static constexpr std::array<std::pair<char, std::string_view>, 5> kEscapes{
        {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
    const auto* row =
        std::ranges::find(kEscapes, letter[0], &std::pair<char, std::string_view>::first);
    html += is_control(letter) ? kReplacement : row != kEscapes.end() ? row->second : letter;
}

}  // namespace

std::string html_text(std::string_view text) {
    std::string html;
    while (!text.empty()) {
        const std::size_t bytes = utf8_character_bytes(text);
        if (bytes == 0) {
            html += kReplacement;
        } else {
            add_escaped(text.substr(0, bytes), html);
        }
        text.remove_prefix(std::max<std::size_t>(bytes, 1));
    }
    return html;
}

}  // namespace hpcai
