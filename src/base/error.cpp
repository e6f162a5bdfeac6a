// SPDX-License-Identifier: Apache-2.0
#include <new>

#include <hpcai/base/error.hpp>

namespace hpcai {

Error to_error(const std::exception& error) {
    if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
    const bool is_out_of_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    return {ExitCode::internal,
            is_out_of_memory ? fmt::format("out of host memory; {}", kMemoryRemedy) : error.what()};
}

void throw_error(ExitCode code, fmt::string_view format, fmt::format_args arguments) {
    throw Error(code, fmt::vformat(format, arguments));
}

void throw_internal_error(fmt::string_view format, fmt::format_args arguments) {
    throw Error(ExitCode::internal, "internal error: " + fmt::vformat(format, arguments));
}

}  // namespace hpcai
