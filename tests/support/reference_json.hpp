// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

#include <nlohmann/json.hpp>

namespace hpcai::tests {

/// Returns tests/data/reference/`name`, which a script of scripts/reference wrote. Throws if it
/// cannot be read.
inline nlohmann::json read_reference_json(const std::string& name) {
    const char* root = std::getenv("HPCAI500_SOURCE_DIR");
    if (root == nullptr) throw std::runtime_error("HPCAI500_SOURCE_DIR is not set");
    std::ifstream file(std::string(root) + "/tests/data/reference/" + name);
    if (!file) throw std::runtime_error("cannot read tests/data/reference/" + name);
    return nlohmann::json::parse(file);
}

}  // namespace hpcai::tests
