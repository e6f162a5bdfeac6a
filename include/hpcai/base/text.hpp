// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace hpcai {

/// Makes untrusted text, such as file, class and host names, safe for one line of a log or a table:
/// control characters and bytes that are not UTF-8 become escapes as in C ("\n", "\x1b"). All other
/// characters are unchanged.
std::string printable(std::string_view text);

/// Quotes `argument` for a POSIX shell: returns it unchanged if it has only letters, digits and
/// _./=:,+@%- and is not empty, else in single quotes.
std::string shell_quote(std::string_view argument);

/// Escapes `text` for HTML and XML, so that it is safe inside an element and a quoted attribute.
/// Control characters, characters that change the writing direction, U+FFFE, U+FFFF and bytes that
/// are not UTF-8 become U+FFFD. Line feeds and tabs are unchanged.
std::string escape_html(std::string_view text);

constexpr std::size_t kPageWidth = 80;  // columns of printed text

/// Breaks a text at blanks into lines of at most kPageWidth columns, unless a word is too long, and
/// indents all lines but the first. Prefers to break after a comma near the end of a line.
/// `line_end` ends each line but the last; its characters before the line feed count as columns.
std::string wrap(std::string_view text, std::size_t indent, std::string_view line_end = "\n");

/// As wrap(), for a text that ends with a shell command: each line but the last ends with a
/// backslash. A text that contains single quotes is unchanged, because its blanks may be quoted.
std::string wrap_command(const std::string& text, std::size_t indent);

/// Returns the length in bytes of the UTF-8 character that `text` begins with; 0 if there is none
/// (RFC 3629: shortest forms only, no surrogates, at most U+10FFFF).
std::size_t utf8_character_bytes(std::string_view text);

/// Returns true if a UTF-8 character is a control character: C0, DEL or C1 (U+0080 to U+009F),
/// which some terminals also interpret.
bool is_control(std::string_view character);

/// Parses `text` as one decimal number, independent of the locale; returns nothing if it contains
/// anything else or is out of range. A floating-point number may be "inf" or "nan".
template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

}  // namespace hpcai
