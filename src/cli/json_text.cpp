// SPDX-License-Identifier: Apache-2.0
#include "json_text.hpp"

#include <nlohmann/json.hpp>

namespace hpcai::cli {

std::string json_text(const nlohmann::ordered_json& document) {
    return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace hpcai::cli
