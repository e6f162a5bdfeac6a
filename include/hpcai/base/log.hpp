// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

namespace hpcai {

enum class Severity { info, warning, error };

/// Receives log messages from any thread. There is no global logger: pass loggers as parameters.
class Logger {
public:
    virtual ~Logger() = default;

    /// Writes one line; control characters in `message` are escaped. Never throws for a full
    /// disk or a closed pipe.
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

/// Returns a logger that flushes each line, such as "2022-11-05T14:03:09.123Z info [label]
/// message". It appends to `file_path`, whose folder it creates if absent, or writes to standard
/// error if the path is empty (standard output is for results). On a terminal, each line erases the
/// line that ProgressLine rewrites. Throws Error(usage) naming a file that cannot be opened.
std::unique_ptr<Logger> make_logger(const std::string& label, const std::string& file_path);

}  // namespace hpcai
