// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/config/reader.hpp>

namespace hpcai::config {

/// The message of parse() about `yaml` as the file "f.yaml", or "accepted". A message with
/// another exit code than `usage`, or of several lines, begins with "WRONG".
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
