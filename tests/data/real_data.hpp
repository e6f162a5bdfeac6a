// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace hpcai::data {

/// Returns a file or folder of the real data in HPCAI500_TEST_DATA. Tests that need it are skipped
/// if the path does not exist; it never does if the variable is not set.
inline std::filesystem::path real_data(const std::string& name) {
    const char* const folder = std::getenv("HPCAI500_TEST_DATA");
    return std::filesystem::path(folder != nullptr ? folder : "HPCAI500_TEST_DATA-is-not-set") /
           name;
}

}  // namespace hpcai::data
