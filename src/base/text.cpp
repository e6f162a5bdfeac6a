// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/base/text.hpp>

namespace hpcai {

std::string printable(std::string_view text) {
    std::string safe;
    safe.reserve(text.size());
    for (const char character : text) {
        const auto byte = static_cast<unsigned char>(character);
        if (character == '\n') {
            safe += "\\n";
        } else if (character == '\t') {
            safe += "\\t";
        } else if (byte < 0x20 || byte == 0x7f) {
            safe += fmt::format("\\x{:02x}", byte);
        } else {
            safe += character;
        }
    }
    return safe;
}

}  // namespace hpcai
