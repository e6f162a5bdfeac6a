// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <cmath>

#include "kernels/host_numbers.hpp"

namespace hpcai::simt {

Numbers read_numbers(tensor::DType dtype, const void* from, std::size_t count, bool tf32) {
    Numbers numbers(count);
    for (std::size_t i = 0; i < count; ++i) {
        numbers[i] = kernels::reference::get(dtype, from, static_cast<std::int64_t>(i));
        if (!tf32 || !std::isfinite(numbers[i])) continue;
        int exponent = 0;
        const double fraction = std::frexp(numbers[i], &exponent);
        numbers[i] = std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
    }
    return numbers;
}

}  // namespace hpcai::simt
