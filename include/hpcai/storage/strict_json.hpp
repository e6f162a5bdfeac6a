// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

namespace hpcai::storage {

/// Limits for untrusted text.
struct JsonLimits {
    std::size_t depth = 32;  // nesting of objects and arrays, except for empty ones
    // A scalar and a key each count as half a value, an object or array as one.
    std::size_t values = 10'000'000;
};

/// Parses JSON (RFC 8259, UTF-8); `name` is for messages. Throws Error(data) for a syntax error, a
/// duplicate key in an object, a number that is out of range, or text that exceeds the limits.
nlohmann::json parse_strict_json(std::string_view text, std::string_view name,
                                 const JsonLimits& limits = {});

/// The location of a value, for messages: "'result.json': work.groups[2].ranks". The text of `file`
/// must outlive the object.
class JsonLocation {
public:
    explicit JsonLocation(std::string_view file) : file_(file) {}

    JsonLocation key(const std::string& key) const;
    JsonLocation index(std::size_t index) const;

    /// Throws Error(data) with this location, `expected`, and the first 60 bytes of `got` as JSON.
    [[noreturn]] void fail(std::string_view expected, const nlohmann::json& got) const;

private:
    JsonLocation(std::string_view file, std::string path) : file_(file), path_(std::move(path)) {}

    std::string_view file_;
    std::string path_;
};

}  // namespace hpcai::storage
