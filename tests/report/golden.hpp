// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

namespace hpcai::report {

/// Compares with tests/data/report/`name`.
inline void expect_golden(const std::string& name, const std::string& actual) {
    const char* root = std::getenv("HPCAI500_SOURCE_DIR");
    ASSERT_NE(root, nullptr) << "HPCAI500_SOURCE_DIR is not set";
    const std::string path = std::string(root) + "/tests/data/report/" + name;
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file) << path;
    const std::string expected{std::istreambuf_iterator<char>(file), {}};
    EXPECT_EQ(actual, expected) << path;
}

}  // namespace hpcai::report
