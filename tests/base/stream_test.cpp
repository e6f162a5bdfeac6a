// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>

#include "support/chi_square.hpp"
#include "support/largest_error.hpp"
#include "support/reference_json.hpp"

/// Compares CounterStream with a second implementation (scripts/reference/sampling_cases.py) and
/// with the distributions of its numbers. Seeds are fixed, so a test always passes or always fails.
/// Each statistic is divided by its critical value of probability 0.001.
namespace hpcai {
namespace {

using nlohmann::json;

CounterStream stream_of(const json& wanted) {
    const json& name = wanted["name"];
    return {name[0], static_cast<RandomPurpose>(name[1].get<int>()), name[2], name[3], name[4]};
}

TEST(CounterStream, DrawsTheIntegersOfASecondImplementationInPython) {
    tests::LargestError error(
        "words, uniform and below(n) that differ from a second implementation", 0);
    const json reference = tests::read_reference_json("sampling.json");
    for (const json& wanted : reference["streams"]) {
        CounterStream words = stream_of(wanted), uniforms = words, choices = words;
        for (const json& word : wanted["words"]) {
            error.add(words.next_u32() != word.get<std::uint32_t>(), "word");
        }
        for (const json& value : wanted["uniforms"]) {
            error.add(uniforms.uniform() != value.get<double>(), "uniform");
        }
        for (const json& choice : wanted["below"]) {
            error.add(choices.below(choice[0]) != choice[1].get<std::uint32_t>(),
                      fmt::format("below {}", choice[0].get<std::uint32_t>()));
        }
    }
}

TEST(CounterStream, DrawsTheNormalNumbersOfASecondImplementationInPython) {
    // double: C libraries may differ in the last bit of log, cos and sin; numbers up to 4
    tests::LargestError error("normal numbers against a second implementation, fp64", 2e-15);
    const json reference = tests::read_reference_json("sampling.json");
    for (const json& wanted : reference["streams"]) {
        CounterStream stream = stream_of(wanted);
        for (const json& value : wanted["normals"]) {
            error.add(std::abs(stream.normal() - value.get<double>()));
        }
    }
}

/// Returns the largest distance of `values` from their distribution (Kolmogorov and Smirnov), times
/// sqrt(n), divided by its critical value sqrt(ln(2 / 0.001) / 2).
template <typename Distribution>
double kolmogorov_smirnov_ratio(std::vector<double> values, Distribution distribution) {
    std::ranges::sort(values);
    const auto n = static_cast<double>(values.size());
    double largest = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double expected = distribution(values[i]), below = static_cast<double>(i) / n;
        largest = std::max({largest, expected - below, below + 1 / n - expected});
    }
    return largest * std::sqrt(n) / std::sqrt(std::log(2 / 0.001) / 2);
}

template <typename Draw>
std::vector<double> many(std::uint32_t name, Draw draw) {
    CounterStream stream(2022, RandomPurpose::test, name);
    std::vector<double> values(200000);
    for (double& value : values) value = draw(stream);
    return values;
}

std::vector<double> uniforms() {
    return many(1, [](CounterStream& stream) { return stream.uniform(); });
}
std::vector<double> normals() {
    return many(2, [](CounterStream& stream) { return stream.normal(); });
}

TEST(CounterStream, DrawsUniformNumbersByKolmogorovAndSmirnov) {
    tests::LargestError error("uniform numbers, Kolmogorov-Smirnov / critical", 1);
    error.add(kolmogorov_smirnov_ratio(uniforms(), [](double x) { return x; }));
}

TEST(CounterStream, DrawsNormalNumbersByKolmogorovAndSmirnov) {
    tests::LargestError error("normal numbers, Kolmogorov-Smirnov / critical", 1);
    error.add(kolmogorov_smirnov_ratio(
        normals(), [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; }));
}

/// Returns the distance of the mean of value^power from `expected`, divided by 3.29 `deviation` /
/// sqrt(n). A ratio above 1 has probability 0.001.
double moment_ratio(const std::vector<double>& values, int power, double expected,
                    double deviation) {
    double sum = 0;
    for (const double value : values) sum += std::pow(value, power);
    const auto n = static_cast<double>(values.size());
    return std::abs(sum / n - expected) / (3.29 * deviation / std::sqrt(n));
}

TEST(CounterStream, DrawsNumbersWithTheMomentsOfTheirDistributions) {
    tests::LargestError uniform("moments 1 to 4 of uniform numbers / critical", 1);
    for (const int power : {1, 2, 3, 4}) {
        const double mean = 1.0 / (power + 1), square = 1.0 / (2 * power + 1);
        uniform.add(moment_ratio(uniforms(), power, mean, std::sqrt(square - mean * mean)));
    }
    // E x^2k = (2k - 1)!!: 1, 3, 15, 105
    tests::LargestError normal("moments 1 to 4 of normal numbers / critical", 1);
    normal.add(moment_ratio(normals(), 1, 0, 1), "mean");
    normal.add(moment_ratio(normals(), 2, 1, std::sqrt(3.0 - 1)), "variance");
    normal.add(moment_ratio(normals(), 3, 0, std::sqrt(15.0)), "skewness");
    normal.add(moment_ratio(normals(), 4, 3, std::sqrt(105.0 - 9)), "kurtosis");
}

TEST(CounterStream, DrawsEachNumberBelowNEquallyOftenByChiSquare) {
    tests::LargestError error("below(n), n = 7, 10, 64, 100, 1024, chi-square / critical", 1);
    for (const std::uint32_t n : {7U, 10U, 64U, 100U, 1024U}) {
        CounterStream stream(3, RandomPurpose::test, n);
        std::vector<double> seen(n, 0);
        const std::vector<double> expected(n, 200);
        for (std::uint32_t draw = 0; draw < 200 * n; ++draw) seen.at(stream.below(n)) += 1;
        error.add(tests::chi_square_ratio(seen, expected, static_cast<int>(n) - 1),
                  fmt::format("n = {}", n));
    }
}

/// Returns chi-square of pairs of numbers in 32 x 32 bins, divided by its critical value.
double pairs_ratio(const std::vector<double>& first, const std::vector<double>& second) {
    std::vector<double> seen(1024, 0);
    for (std::size_t i = 0; i < first.size(); ++i) {
        seen.at(static_cast<std::size_t>(first[i] * 32) * 32 +
                static_cast<std::size_t>(second[i] * 32)) += 1;
    }
    const std::vector<double> expected(1024, static_cast<double>(first.size()) / 1024);
    return tests::chi_square_ratio(seen, expected, 1023);
}

TEST(CounterStream, DrawsNumbersIndependentOfTheirNeighboursAndOfNeighbouringStreams) {
    tests::LargestError error("pairs in and across streams, chi-square / critical, df 1023", 1);
    const std::vector<double> numbers = uniforms();
    for (const std::ptrdiff_t distance : {1, 2, 4}) {
        std::vector<double> moved = numbers;
        std::rotate(moved.begin(), moved.begin() + distance, moved.end());
        error.add(pairs_ratio(numbers, moved), fmt::format("distance {}", distance));
    }
    const auto firsts = [](std::array<std::uint32_t, 4> step) {
        std::vector<double> values;
        for (std::uint32_t i = 0; i < 200000; ++i) {
            values.push_back(CounterStream(5 + step[0], RandomPurpose::test, i + step[1],
                                           7 + step[2], 9 + step[3])
                                 .uniform());
        }
        return values;
    };
    const std::vector<double> base = firsts({0, 0, 0, 0});
    for (std::size_t part = 0; part < 4; ++part) {
        std::array<std::uint32_t, 4> step{};
        step[part] = 1;
        error.add(pairs_ratio(base, firsts(step)), fmt::format("next stream, part {}", part));
    }
}

TEST(CounterStream, SetsEachOfThe32BitsHalfOfTheTime) {
    CounterStream stream(6, RandomPurpose::test);
    std::array<double, 32> ones{};
    const int words = 100000;
    for (int i = 0; i < words; ++i) {
        const std::uint32_t word = stream.next_u32();
        for (std::size_t bit = 0; bit < 32; ++bit) ones[bit] += word >> bit & 1;
    }
    double sum = 0;
    for (const double count : ones) sum += std::pow(count - words / 2.0, 2) / (words / 4.0);
    tests::LargestError error("each of 32 bits against one half, chi-square / critical, df 32", 1);
    error.add(sum / tests::critical_chi_square(32));
}

}  // namespace
}  // namespace hpcai
