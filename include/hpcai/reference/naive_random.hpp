// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include <hpcai/base/philox.hpp>
#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::naive {

/// Returns the number of type `dtype` (fp32, fp16 or bf16) nearest to the fp32 number nearest to
/// `value`, ties to even.
inline double round_to(tensor::DType dtype, double value) {
    const float single = static_cast<float>(value);
    if (dtype == tensor::DType::f32) return single;
    if (dtype == tensor::DType::f16) {
        int exponent = 0;
        std::frexp(single, &exponent);
        const int unit = std::max(exponent - 11, -24);  // f16: 11 significant bits, at least 2^-24
        const double rounded = std::ldexp(std::nearbyint(std::ldexp(single, -unit)), unit);
        return std::abs(rounded) < 65520 ? rounded : std::copysign(HUGE_VAL, rounded);
    }
    const auto bits = std::bit_cast<std::uint32_t>(single);
    return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

/// Random tensors whose numbers exist in `dtype`, so that storing them does not change them.
class Random {
public:
    Random(tensor::DType dtype, std::uint32_t stream)
        : dtype_(dtype), stream_(2022, RandomPurpose::test, stream) {}

    Tensor normal(const Shape& shape, double mean = 0, double deviation = 1) {
        Tensor tensor(shape);
        for (double& value : tensor.values) {
            value = round_to(dtype_, mean + deviation * stream_.normal());
        }
        return tensor;
    }

    /// Returns integers in [0, n).
    Tensor below(const Shape& shape, std::uint32_t n) {
        Tensor tensor(shape);
        for (double& value : tensor.values) value = stream_.below(n);
        return tensor;
    }

private:
    tensor::DType dtype_;
    CounterStream stream_;
};

}  // namespace hpcai::naive
