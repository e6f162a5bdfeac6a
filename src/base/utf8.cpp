// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/utf8.hpp>

namespace hpcai {

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

}  // namespace hpcai
