// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/storage/safetensors.hpp>

/// Weights of training runs that sum the same numbers in different orders.
namespace hpcai::end_to_end {

inline std::vector<float> numbers(const storage::StoredTensor& tensor) {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
}

inline void expect_near(const storage::StoredTensor& got, const storage::StoredTensor& want) {
    ASSERT_EQ(got.shape, want.shape) << want.name;
    if (want.type != storage::ElementType::f32) {
        EXPECT_TRUE(std::ranges::equal(got.bytes, want.bytes)) << want.name;
        return;
    }
    const std::vector<float> wanted = numbers(want), have = numbers(got);
    double largest = 0, difference = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        largest = std::max<double>(largest, std::abs(wanted[i]));
        difference = std::max<double>(difference, std::abs(have[i] - wanted[i]));
    }
    EXPECT_LE(difference, 1e-4 * largest + 1e-6) << want.name;  // fp32, three steps
}

/// Compares all tensors of two files of weights, up to rounding.
inline void expect_equal_weights(const std::filesystem::path& got_file,
                                 const std::filesystem::path& wanted_file) {
    const auto got = storage::read_safetensors(got_file);
    const auto wanted = storage::read_safetensors(wanted_file);
    ASSERT_EQ(got.tensors().size(), wanted.tensors().size());
    for (const storage::StoredTensor& tensor : wanted.tensors()) {
        const storage::StoredTensor* found = got.find(tensor.name);
        ASSERT_NE(found, nullptr) << tensor.name;
        expect_near(*found, tensor);
    }
}

}  // namespace hpcai::end_to_end
