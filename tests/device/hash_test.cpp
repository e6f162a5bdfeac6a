// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/device/cpu_device.hpp>

#include "device/cpu/loops/loops.hpp"

namespace hpcai::device {
namespace {

using Words = std::vector<std::uint64_t>;

/// The SplitMix64 generator (Steele, Lea, Flood 2014), as published by Sebastiano Vigna.
class SplitMix64 {
public:
    explicit SplitMix64(std::uint64_t state) : state_(state) {}
    std::uint64_t next() {
        state_ += 0x9e3779b97f4a7c15;
        std::uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        return z ^ (z >> 31);
    }

private:
    std::uint64_t state_;
};

/// Returns Device::hash, computed from the last word to the first: word i is the state of a
/// generator after i steps.
std::uint64_t naive_hash(const std::vector<float>& values) {
    std::uint64_t hash = values.size();
    for (std::uint64_t word = (values.size() + 1) / 2; word-- > 0;) {
        std::uint64_t bits = std::bit_cast<std::uint32_t>(values[2 * word]);
        if (2 * word + 1 < values.size()) {
            bits += 0x100000000 * std::bit_cast<std::uint32_t>(values[2 * word + 1]);
        }
        hash += SplitMix64(bits + word * 0x9e3779b97f4a7c15).next();
    }
    return hash;
}

std::vector<float> numbers(std::size_t count) {
    SplitMix64 random(42);
    std::vector<float> values(count);
    for (float& value : values) {
        value = static_cast<float>(static_cast<std::int64_t>(random.next())) * 0x1p-63F;
    }
    return values;
}

std::uint64_t hash(const std::vector<float>& values, int threads = 2) {
    return make_cpu_device({.threads = threads})->hash(values);
}

TEST(SplitMix, GivesThePublishedNumbers) {
    // Seed 1234567: the test vector of Rosetta Code's "Pseudo-random numbers/Splitmix64".
    SplitMix64 random(1234567);
    const Words expected{6457827717110365317U, 3203168211198807973U, 9817491932198370423U,
                         4593380528125082431U, 16408922859458223821U};
    for (const std::uint64_t number : expected) EXPECT_EQ(random.next(), number);
}

TEST(Hash, IsTheDocumentedSumOfSplitMixNumbers) {
    for (const std::size_t count : {0, 1, 2, 3, 16, 31, 32767, 32768, 32769, 100001}) {
        const std::vector<float> values = numbers(count);
        EXPECT_EQ(hash(values), naive_hash(values)) << count;
    }
    EXPECT_EQ(hash({}), 0U);
}

TEST(Hash, DoesNotDependOnTheNumberOfThreads) {
    const std::vector<float> values = numbers(300001);
    for (const int threads : {1, 2, 3, 7}) EXPECT_EQ(hash(values, threads), naive_hash(values));
}

TEST(Hash, IsTheSameByEveryInstructionSetOfThisCpu) {
    const std::vector<float> values = numbers(70001);
    using namespace cpu;
    EXPECT_EQ(hash_bits(values, baseline::table()), naive_hash(values));
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        EXPECT_EQ(hash_bits(values, avx2::table()), naive_hash(values));
    }
    if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq")) {
        EXPECT_EQ(hash_bits(values, avx512::table()), naive_hash(values));
    }
}

TEST(Hash, SeesEverySingleBit) {
    const auto device = make_cpu_device({});
    std::vector<float> values = numbers(67);
    std::set<std::uint64_t> seen{device->hash(values)};
    for (float& value : values) {
        const float before = value;
        for (int bit = 0; bit < 32; ++bit) {
            value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(before) ^ (1U << bit));
            EXPECT_TRUE(seen.insert(device->hash(values)).second) << bit;
        }
        value = before;
    }
    EXPECT_EQ(seen.size(), 1 + 67 * 32U);
}

TEST(Hash, SeesSwappedElements) {
    const auto device = make_cpu_device({});
    std::vector<float> values = numbers(40);
    std::set<std::uint64_t> seen{device->hash(values)};
    for (std::size_t i = 0; i < values.size(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            std::swap(values[i], values[j]);
            EXPECT_TRUE(seen.insert(device->hash(values)).second) << i << " and " << j;
            std::swap(values[i], values[j]);
        }
    }
}

TEST(Hash, DistinguishesByTheirBitsNumbersThatCompareEqualOrNotAtAll) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float other_nan = std::bit_cast<float>(std::bit_cast<std::uint32_t>(nan) + 1);
    EXPECT_NE(hash({0.0F, 1.0F}), hash({-0.0F, 1.0F}));
    EXPECT_EQ(hash({nan, 1.0F}), hash({nan, 1.0F}));
    EXPECT_NE(hash({nan, 1.0F}), hash({other_nan, 1.0F}));
    EXPECT_NE(hash({1.0F}), hash({1.0F, 0.0F})) << "zeros at the end";
    EXPECT_NE(hash({0.0F}), hash({}));
}

TEST(Determinism, IsGuaranteedOnlyWhenRequested) {
    const Determinism none = make_cpu_device({})->determinism();
    EXPECT_FALSE(none.is_repeatable);
    EXPECT_FALSE(none.is_thread_invariant);
    const Determinism promised = make_cpu_device({.deterministic = true})->determinism();
    EXPECT_TRUE(promised.is_repeatable);
    EXPECT_TRUE(promised.is_thread_invariant);
    EXPECT_NE(promised.conditions.find("oneDNN "), std::string::npos) << promised.conditions;
}

}  // namespace
}  // namespace hpcai::device
