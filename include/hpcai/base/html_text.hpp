// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hpcai {

/// Escapes `text` for HTML and SVG, so that it is safe inside an element and a quoted attribute.
/// Control characters, marks that reverse the direction of writing and bytes that are no UTF-8
/// become U+FFFD. Line breaks and tabs stay.
std::string html_text(std::string_view text);

}  // namespace hpcai
