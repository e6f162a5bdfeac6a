// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace hpcai {

/// Bytes of the UTF-8 character at the start of `text`; 0 where there is none (RFC 3629: shortest
/// forms only, no surrogates, at most U+10FFFF).
std::size_t utf8_character_bytes(std::string_view text);

}  // namespace hpcai
