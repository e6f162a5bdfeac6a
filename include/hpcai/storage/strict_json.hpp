// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json.hpp>

namespace hpcai::storage {

/// What a hostile text may cost.
struct JsonLimits {
    int depth = 32;
    std::size_t values = 10'000'000;
};

/// Parses JSON (RFC 8259, UTF-8); `name` stands in messages. Throws Error(data) for a syntax
/// error, a key that occurs twice in one object, a number out of range, or a text over the limits.
nlohmann::json parse_strict_json(std::string_view text, std::string_view name,
                                 const JsonLimits& limits = {});

}  // namespace hpcai::storage
