// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/rounding.hpp>

#include "loops/loops.hpp"

namespace hpcai::device::cpu {

std::uint64_t hash_bits(std::span<const float> values, const SimdKernels& loops) {
    constexpr std::int64_t kPart = 1 << 14;  // words
    const auto words = static_cast<std::int64_t>(values.size() / 2);
    const std::int64_t parts = ceil_div(words, kPart);
    std::uint64_t sum = values.size();
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t first = part * kPart;
        sum += loops.hash_words(values.data() + 2 * first, std::min(kPart, words - first), first);
    }
    if (values.size() % 2 != 0) {
        const std::array<float, 2> last{values.back(), 0};
        sum += loops.hash_words(last.data(), 1, words);
    }
    return sum;
}

}  // namespace hpcai::device::cpu
