// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "kernels/hash.hpp"

namespace hpcai::kernels::reference {

inline void hash(const float* values, std::int64_t count, std::uint64_t* sum, Stream) {
    *sum = static_cast<std::uint64_t>(count);
    for (std::int64_t i = 0; 2 * i < count; ++i) {
        std::uint64_t z = std::bit_cast<std::uint32_t>(values[2 * i]);
        if (2 * i + 1 < count) {
            z += std::uint64_t{std::bit_cast<std::uint32_t>(values[2 * i + 1])} * 0x100000000;
        }
        z += static_cast<std::uint64_t>(i + 1) * 0x9e3779b97f4a7c15;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
        z = (z ^ z >> 27) * 0x94d049bb133111eb;
        *sum += z ^ z >> 31;
    }
}

}  // namespace hpcai::kernels::reference
