// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace hpcai {

/// One row of the table that `words_of` returns for an enumeration.
template <typename Enumeration>
struct Word {
    Enumeration value;
    std::string_view word;
};

/// Returns the word that stands for `value` in stored records and in tables.
template <typename Enumeration>
requires requires(Enumeration value) {
    words_of(value);
}
constexpr std::string_view word_of(Enumeration value) {
    for (const auto& row : words_of(value)) {
        if (row.value == value) return row.word;
    }
    return "";
}

}  // namespace hpcai
