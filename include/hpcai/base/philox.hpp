// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

/// Counter-based random numbers: every number is a function of a seed, a purpose and indices, so it
/// is the same for every rank count, thread count and order of work. Streams share no state.
namespace hpcai {

/// Returns one block of Philox4x32-10: 128 random bits, a bijection of `counter` for each key.
/// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011;
/// agrees with the known-answer tests of Random123.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t product_0 = std::uint64_t{0xD2511F53} * counter[0];
        const std::uint64_t product_1 = std::uint64_t{0xCD9E8D57} * counter[2];
        counter = {static_cast<std::uint32_t>(product_1 >> 32) ^ counter[1] ^ key[0],
                   static_cast<std::uint32_t>(product_1),
                   static_cast<std::uint32_t>(product_0 >> 32) ^ counter[3] ^ key[1],
                   static_cast<std::uint32_t>(product_0)};
        key[0] += 0x9E3779B9;  // Weyl sequence of the golden ratio
        key[1] += 0xBB67AE85;  // and of sqrt(3) - 1
    }
    return counter;
}

/// The purpose of a stream. The numbers are part of the definition of every result: never renumber,
/// only append.
enum class RandomPurpose : std::uint8_t {
    bootstrap = 1,          // which samples a model trains on
    shuffle = 2,            // order of a model's samples in an epoch
    augmentation = 3,       // random changes of one training sample, such as crop and flip
    initialization = 4,     // initial weights
    synthetic_data = 5,     // generated patterns and random tensors
    photographs = 6,        // the photograph generator
    confidence = 7,         // resampling for confidence intervals
    test = 8,               // tests
    climate = 9,            // the climate generator
    regions = 10,           // anchors and regions sampled for the losses of one training sample
    rounding = 11,          // stochastic rounding of gradients to int8
    inheritance = 12,       // filters that a trial of a search copies, seed of its new filters
    proposal = 13,          // parent trial and changes of the model in a trial of a search
    hyper_parameters = 14,  // hyper-parameters of a trial of a search
};

/// The sequence of random numbers identified by (seed, purpose, a, b, c). Streams of one seed share
/// no block: purpose, a, b, c and the block's index are distinct fields of Philox's counter, and
/// the seed is its key. A stream holds 2^26 numbers of 32 bits; drawing more throws
/// Error(internal).
class CounterStream {
public:
    CounterStream(std::uint64_t seed, RandomPurpose purpose, std::uint32_t a = 0,
                  std::uint32_t b = 0, std::uint32_t c = 0)
        : key_{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)},
          counter_{static_cast<std::uint32_t>(purpose) << kBlockBits, a, b, c} {}

    std::uint32_t next_u32() {
        if (used_ == 4) refill();
        return block_[used_++];
    }

    /// 64 uniform bits; the first word drawn is the low one.
    std::uint64_t next_u64() {
        const std::uint64_t low = next_u32();
        return low | (std::uint64_t{next_u32()} << 32);
    }

    /// A multiple of 2^-53 in [0, 1).
    double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }

    /// Uniform in [0, n), without bias (Lemire's method with rejection); 0 when n is 0 or 1.
    std::uint32_t below(std::uint32_t n);

    /// Standard normal (Box-Muller). Uses the C library's log, cos and sin, so the last bit may
    /// differ between C libraries.
    double normal();

private:
    static constexpr int kBlockBits = 24;

    void refill();

    std::array<std::uint32_t, 2> key_;
    std::array<std::uint32_t, 4> counter_;
    std::array<std::uint32_t, 4> block_{};
    std::uint32_t blocks_ = 0;
    std::uint32_t used_ = 4;
    std::optional<double> spare_normal_;
};

}  // namespace hpcai
