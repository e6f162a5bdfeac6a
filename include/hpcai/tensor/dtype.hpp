// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hpcai::tensor {

enum class DType : std::uint8_t { f32, bf16, f16, u8, s32 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
    constexpr std::array<std::size_t, 5> kBytes{4, 2, 2, 1, 4};
    return kBytes.at(static_cast<std::size_t>(dtype));
}

constexpr std::string_view name_of(DType dtype) {
    constexpr std::array kNames{"fp32", "bf16", "fp16", "uint8", "int32"};
    return kNames.at(static_cast<std::size_t>(dtype));
}

}  // namespace hpcai::tensor
