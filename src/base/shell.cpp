// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/shell.hpp>

namespace hpcai {

std::string shell_word(std::string_view argument) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./=:,+@%-";
    if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string_view::npos) {
        return std::string(argument);
    }
    std::string word = "'";
    for (const char letter : argument) word += letter == '\'' ? "'\\''" : std::string(1, letter);
    return word + "'";
}

}  // namespace hpcai
