// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace hpcai::cli {

/// `document` as a command prints it. Bytes that are no UTF-8 become the replacement character.
std::string json_text(const nlohmann::ordered_json& document);

}  // namespace hpcai::cli
