// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace hpcai {

/// `argument` as one would type it into a POSIX shell: itself where it has nothing special, else in
/// single quotes.
std::string shell_word(std::string_view argument);

}  // namespace hpcai
