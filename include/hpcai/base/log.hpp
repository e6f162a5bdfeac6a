// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace hpcai {

enum class Severity { info, warning, error };

/// Receives log messages, from any thread. Loggers are parameters; there is no global one.
class Logger {
public:
    virtual ~Logger() = default;

    /// Writes one line; control characters in `message` are escaped. Never throws for a full disk
    /// or a closed pipe.
    virtual void write(Severity severity, std::string_view message) = 0;

    template <typename... Arguments>
    void info(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        write(Severity::info, fmt::format(format, std::forward<Arguments>(arguments)...));
    }
    template <typename... Arguments>
    void warn(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        write(Severity::warning, fmt::format(format, std::forward<Arguments>(arguments)...));
    }
    template <typename... Arguments>
    void error(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
        write(Severity::error, fmt::format(format, std::forward<Arguments>(arguments)...));
    }
};

/// A logger with lines such as "2022-11-05T14:03:09.123Z info [group 0 rank 1] message", each
/// flushed; `label` is in the brackets. An empty `file_path` means standard error, because standard
/// output is for results. Otherwise lines are appended to that file, whose folder is created if
/// absent. Throws Error(usage) naming the file if it cannot be opened.
std::unique_ptr<Logger> make_logger(const std::string& label, const std::string& file_path);

}  // namespace hpcai
