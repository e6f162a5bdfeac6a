// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hpcai::tensor {

enum class DType : std::uint8_t { f32, bf16, f16, u8, s32 };

/// Bytes of one element.
constexpr std::size_t size_of(DType dtype) {
    switch (dtype) {
        case DType::f32:
        case DType::s32:
            return 4;
        case DType::bf16:
        case DType::f16:
            return 2;
        case DType::u8:
            return 1;
    }
    return 0;
}

constexpr std::string_view name_of(DType dtype) {
    switch (dtype) {
        case DType::f32:
            return "fp32";
        case DType::bf16:
            return "bf16";
        case DType::f16:
            return "fp16";
        case DType::u8:
            return "uint8";
        case DType::s32:
            return "int32";
    }
    return "";
}

}  // namespace hpcai::tensor
