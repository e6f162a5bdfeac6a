// SPDX-License-Identifier: Apache-2.0
#include <hpcai/base/error.hpp>

namespace hpcai {

void throw_error(ExitCode code, fmt::string_view format, fmt::format_args arguments) {
    throw Error(code, fmt::vformat(format, arguments));
}

void throw_internal_error(fmt::string_view format, fmt::format_args arguments) {
    throw Error(ExitCode::internal, "internal error: " + fmt::vformat(format, arguments));
}

}  // namespace hpcai
