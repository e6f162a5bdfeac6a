// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/base/units.hpp>

namespace hpcai {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Units, FormatBytesWithBinaryPrefixes) {
    EXPECT_EQ(format_bytes(0), "0 B");
    EXPECT_EQ(format_bytes(1023), "1023 B");
    EXPECT_EQ(format_bytes(1024), "1.00 KiB");
    EXPECT_EQ(format_bytes(1536), "1.50 KiB");
    EXPECT_EQ(format_bytes(25557032ull * 4), "97.5 MiB");
    EXPECT_EQ(format_bytes((1ull << 30) - 1), "1.00 GiB");
    EXPECT_EQ(format_bytes(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
}

TEST(Units, FormatFlopsForPeople) {
    EXPECT_EQ(format_si(1.234e12, "FLOPS"), "1.23 TFLOPS");
    EXPECT_EQ(format_si(9.996e14, "FLOPS"), "1.00 PFLOPS");
    EXPECT_EQ(format_si(5.6e22, "FLOPS"), "56000 EFLOPS");
    EXPECT_EQ(format_si(0, "FLOPS"), "0 FLOPS");
}

TEST(Units, FormatSmallAndNegativeValuesWithPrefixes) {
    EXPECT_EQ(format_si(0.0456, "s"), "45.6 ms");
    EXPECT_EQ(format_si(-1500, "J"), "-1.50 kJ");
    EXPECT_EQ(format_si(1e-12, "s"), "0 s");
}

TEST(Units, FormatSecondsFromMicrosecondsToDays) {
    EXPECT_EQ(format_seconds(45e-6), "45.0 us");
    EXPECT_EQ(format_seconds(12.34), "12.3 s");
    EXPECT_EQ(format_seconds(59.94), "59.9 s");
    EXPECT_EQ(format_seconds(59.96), "1 min 00 s");
    EXPECT_EQ(format_seconds(185), "3 min 05 s");
    EXPECT_EQ(format_seconds(3599.6), "1 h 00 min");
    EXPECT_EQ(format_seconds(7620), "2 h 07 min");
    EXPECT_EQ(format_seconds(273600), "3 d 04 h");
    EXPECT_EQ(format_seconds(-2), "-2.00 s");
    EXPECT_EQ(format_seconds(1e300), "1.16e+295 d");
}

TEST(Units, FormatPercentAndCount) {
    EXPECT_EQ(format_percent(0.1234), "12.3 %");
    EXPECT_EQ(format_percent(1), "100.0 %");
    EXPECT_EQ(format_count(1281167), "1 281 167");
    EXPECT_EQ(format_count(-1000), "-1 000");
    EXPECT_EQ(format_count(-100), "-100");
    EXPECT_EQ(format_count(999), "999");
}

TEST(Units, CountOneAndManyThings) {
    EXPECT_EQ(counted(1, "rank"), "1 rank");
    EXPECT_EQ(counted(0, "rank"), "0 ranks");
    EXPECT_EQ(counted(1024, "node"), "1 024 nodes");
    EXPECT_EQ(counted(1, "micro-batch"), "1 micro-batch");
    EXPECT_EQ(counted(2, "micro-batch"), "2 micro-batches");
    EXPECT_EQ(counted(2, "class"), "2 classes");
    EXPECT_EQ(counted(90, "epoch"), "90 epochs");
}

TEST(Units, ReportWhenANumberIsNotAvailable) {
    EXPECT_EQ(format_si(std::numeric_limits<double>::quiet_NaN(), "FLOPS"), "n/a");
    EXPECT_EQ(format_si(kInfinity, "FLOPS"), "n/a");
    EXPECT_EQ(format_seconds(-kInfinity), "n/a");
    EXPECT_EQ(format_percent(kInfinity), "n/a");
}

}  // namespace
}  // namespace hpcai
