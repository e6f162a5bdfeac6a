// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <numbers>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>

namespace hpcai {

void CounterStream::refill() {
    ensure(blocks_ < (std::uint32_t{1} << kBlockBits), "a random stream has no numbers left");
    auto counter = counter_;
    counter[0] |= blocks_++;
    block_ = philox4x32(counter, key_);
    used_ = 0;
}

std::uint32_t CounterStream::below(std::uint32_t n) {
    if (n <= 1) return 0;
    const std::uint32_t rejected = (0u - n) % n;  // 2^32 mod n: number of low words to reject
    std::uint64_t product = 0;
    do {
        product = std::uint64_t{next_u32()} * n;
    } while (static_cast<std::uint32_t>(product) < rejected);
    return static_cast<std::uint32_t>(product >> 32);
}

double CounterStream::normal() {
    if (spare_normal_) {
        const double value = *spare_normal_;
        spare_normal_.reset();
        return value;
    }
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));  // uniform() < 1
    const double angle = 2.0 * std::numbers::pi * uniform();
    spare_normal_ = radius * std::sin(angle);
    return radius * std::cos(angle);
}

}  // namespace hpcai
