// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>

namespace hpcai::config {

/// Returns the message of parse() about `yaml` as the file "f.yaml", or "accepted". The result
/// begins with "WRONG" if the exit code is not `usage` or the message has several lines.
inline std::string message_of(const std::string& yaml,
                              const std::vector<std::string>& overrides = {}) {
    try {
        parse(yaml, "f.yaml", overrides);
    } catch (const Error& error) {
        const std::string message = error.what();
        const bool right =
            error.code() == ExitCode::usage && message.find('\n') == std::string::npos;
        return right ? message : "WRONG " + message;
    }
    return "accepted";
}

inline std::string override_message(const std::string& given) {
    return message_of("", {given});
}

}  // namespace hpcai::config
