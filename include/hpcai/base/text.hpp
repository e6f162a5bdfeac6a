// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hpcai {

/// Returns `text`, which may come from outside (file, class and host names), safe for one line of a
/// log or a table: ASCII control characters become escapes as in C ("\n", "\x1b"). Everything else,
/// UTF-8 included, is unchanged.
std::string printable(std::string_view text);

/// Returns `argument` as a word of a POSIX shell: unchanged if it has no special characters, else
/// in single quotes.
std::string shell_quote(std::string_view argument);

/// Escapes `text` for HTML and SVG, so that it is safe inside an element and a quoted attribute.
/// Control characters, characters that change the writing direction, and bytes that are not UTF-8
/// become U+FFFD. Line feeds and tabs are unchanged.
std::string escape_html(std::string_view text);

/// Returns the length in bytes of the UTF-8 character that `text` begins with; 0 if there is none
/// (RFC 3629: shortest forms only, no surrogates, at most U+10FFFF).
std::size_t utf8_character_bytes(std::string_view text);

/// Returns true if a UTF-8 character is a control character: C0, DEL or C1 (U+0080 to U+009F). Some
/// terminals obey C1, too.
bool is_control(std::string_view character);

/// Returns the decimal number that is the whole `text`, independent of the locale; nothing for any
/// other text. A floating-point number may be "inf" or "nan".
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

}  // namespace hpcai
