// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hpcai {

/// Text from outside (file names, class names, host names) made safe for one line of a log or a
/// table: control characters become escapes as in C ("\n", "\x1b"); everything else, UTF-8
/// included, stays.
std::string printable(std::string_view text);

}  // namespace hpcai
