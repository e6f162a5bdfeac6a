// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdint>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>

namespace hpcai {
namespace {

using Words4 = std::array<std::uint32_t, 4>;

TEST(Philox, AgreesWithTheKnownAnswersOfRandom123) {
    static_assert(philox4x32({0, 0, 0, 0}, {0, 0}) ==
                  Words4{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    constexpr std::uint32_t ones = 0xffffffff;
    static_assert(philox4x32({ones, ones, ones, ones}, {ones, ones}) ==
                  Words4{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    const Words4 pi_digits = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
    EXPECT_EQ(philox4x32(pi_digits, {0xa4093822, 0x299f31d0}),
              (Words4{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, AgreesWithOlderKnownAnswersOfRandom123ThatSetOneWordEach) {
    // tests/old_kat_vectors of github.com/DEShawResearch/random123, philox4x32 with 10 rounds
    constexpr std::uint32_t ones = 0xffffffff, high = 0x80000000;
    const struct {
        Words4 counter;
        std::array<std::uint32_t, 2> key;
        Words4 answer;
    } cases[] = {
        {{1, 0, 0, 0}, {1, 0}, {0xac08141b, 0xdfc5ccbe, 0x79c07a47, 0xa7f66093}},
        {{0, 1, 0, 0}, {1, 0}, {0x833ff8dc, 0x225c963c, 0x232b88b3, 0x0b334b07}},
        {{0, 0, 1, 0}, {1, 0}, {0x07071c12, 0x428264b6, 0x3909104b, 0x6da2bda2}},
        {{0, 0, 0, 1}, {1, 0}, {0x127bee41, 0x1e047488, 0x48842b20, 0x0a393496}},
        {{1, 0, 0, 0}, {0, 1}, {0xccf3076a, 0x6306f434, 0xbea71965, 0xd96fe48a}},
        {{0, 1, 0, 0}, {0, 1}, {0x532f1322, 0x36c890fb, 0x6504b937, 0x07bbfef7}},
        {{0, 0, ones, 0}, {0, ones}, {0x07678411, 0x9e524307, 0xba634e67, 0x94ee8cb7}},
        {{0, 0, 0, high}, {0, high}, {0xf7a0b371, 0xe51dc93d, 0x56ce135d, 0x1d4b5580}},
    };
    for (const auto& known : cases) EXPECT_EQ(philox4x32(known.counter, known.key), known.answer);
}

TEST(CounterStream, IsTheSequenceOfItsBlocks) {
    CounterStream stream(0x0000000500000007, RandomPurpose::shuffle, 11, 12, 13);
    for (std::uint32_t block = 0; block < 3; ++block) {
        const auto expected = philox4x32({0x02000000 | block, 11, 12, 13}, {7, 5});
        for (std::uint32_t word : expected) EXPECT_EQ(stream.next_u32(), word);
    }
}

TEST(CounterStream, DiffersWhenAnyPartOfItsNameDiffers) {
    std::set<std::uint64_t> first;
    for (std::uint64_t seed : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{1} << 32}) {
        for (auto purpose : {RandomPurpose::bootstrap, RandomPurpose::augmentation}) {
            for (std::uint32_t part = 0; part < 4; ++part) {
                const std::uint32_t a = part == 1, b = part == 2, c = part == 3;
                first.insert(CounterStream(seed, purpose, a, b, c).next_u64());
            }
        }
    }
    EXPECT_EQ(first.size(), 3u * 2u * 4u);
}

TEST(CounterStream, DrawsUniformNumbersBelowOneWithMeanAHalf) {
    CounterStream stream(1, RandomPurpose::test);
    const int draws = 100000;
    double sum = 0;
    for (int i = 0; i < draws; ++i) {
        const double value = stream.uniform();
        ASSERT_GE(value, 0.0);
        ASSERT_LT(value, 1.0);
        sum += value;
    }
    EXPECT_NEAR(sum / draws, 0.5, 5 * std::sqrt(1.0 / 12 / draws));
}

TEST(CounterStream, DrawsEachNumberBelowNEquallyOften) {
    CounterStream stream(2, RandomPurpose::test);
    const int draws = 70000, n = 7;
    std::vector<double> seen(n, 0);
    for (int i = 0; i < draws; ++i) seen.at(stream.below(n)) += 1;
    double chi_square = 0;
    for (double count : seen) chi_square += std::pow(count - draws / 7.0, 2) / (draws / 7.0);
    EXPECT_LT(chi_square, 22.5);  // 6 degrees of freedom, p = 0.001
}

TEST(CounterStream, HasNoBiasWhenNIsNearTheRange) {
    // Without rejection, values with remainder 0 modulo 3 would be drawn twice as often as others.
    CounterStream stream(3, RandomPurpose::test);
    const std::uint32_t n = 0xC0000000;
    const int draws = 30000;
    int multiples = 0;
    for (int i = 0; i < draws; ++i) multiples += stream.below(n) % 3 == 0;
    EXPECT_NEAR(multiples, draws / 3.0, 5 * std::sqrt(draws * 2.0 / 9));
}

TEST(CounterStream, DrawsZeroBelowZeroAndBelowOne) {
    CounterStream stream(3, RandomPurpose::test);
    EXPECT_EQ(stream.below(0), 0u);
    EXPECT_EQ(stream.below(1), 0u);
}

TEST(CounterStream, DrawsNormalNumbersOfUnitVariance) {
    CounterStream stream(4, RandomPurpose::test);
    const int draws = 100000;
    double sum = 0, squares = 0, beyond_two = 0;
    for (int i = 0; i < draws; ++i) {
        const double value = stream.normal();
        sum += value;
        squares += value * value;
        beyond_two += std::abs(value) > 2;
    }
    EXPECT_NEAR(sum / draws, 0, 5 / std::sqrt(draws));
    EXPECT_NEAR(squares / draws, 1, 5 * std::sqrt(2.0 / draws));
    EXPECT_NEAR(beyond_two / draws, 0.0455, 0.0033);
}

}  // namespace
}  // namespace hpcai
