// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

#include <fmt/core.h>

namespace hpcai {

/// The exit code of the process, part of the user interface (docs/RESULT_FORMAT.md).
enum class ExitCode : int {
    ok = 0,
    internal = 1,
    usage = 2,
    launch = 3,
    data = 4,
    all_groups_failed = 5,
    watchdog = 6,
    partial = 7,
    stopped = 8,
    invalid = 9,
    mismatch = 10,
};

/// An error, and the exit code with which it ends the program unless it is handled. The message is
/// complete: for wrong input it names the key or file, and the value and the legal values where
/// these help.
class Error : public std::runtime_error {
public:
    Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
    ExitCode code() const noexcept { return code_; }

private:
    ExitCode code_;
};

/// The end of the message of a failed allocation.
inline constexpr const char* kMemoryRemedy =
    "a run needs less with a smaller training.batch_size, a smaller data.prefetch_batches or fewer "
    "ranks per node";

/// Returns the Error of a caught exception: an Error is unchanged, others get the code internal.
Error to_error(const std::exception& error);

/// These functions throw for require() and ensure(). They are out of line to keep callers small.
[[noreturn]] void throw_error(ExitCode code, fmt::string_view format, fmt::format_args arguments);
[[noreturn]] void throw_internal_error(fmt::string_view format, fmt::format_args arguments);

/// Checks user input: throws Error with `code` and the formatted message unless `condition` holds.
template <typename... Arguments>
void require(bool condition, ExitCode code, fmt::format_string<Arguments...> format,
             Arguments&&... arguments) {
    if (!condition) throw_error(code, format, fmt::make_format_args(arguments...));
}

/// Checks an invariant: throws Error(internal) with the message unless `condition` holds.
template <typename... Arguments>
void ensure(bool condition, fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    if (!condition) throw_internal_error(format, fmt::make_format_args(arguments...));
}

}  // namespace hpcai
