// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/data/record_set.hpp>

#include "transcoded_files.hpp"

namespace hpcai::data {
namespace {

using test::kOne;
using test::kPixels;
using test::RawClimateFile;
using test::Transcode;
using testing::HasSubstr;

constexpr float kMissingValue = std::numeric_limits<float>::quiet_NaN();

/// Returns the value of IEEE 754 binary16 `bits`.
double number_of_binary16(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    if (exponent == 31) return sign * std::numeric_limits<double>::infinity();
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

double number_of_bfloat16(std::uint16_t bits) {
    const auto wide = static_cast<std::uint32_t>(bits) << 16;
    float value = 0;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

/// Returns the statistics by definition, over values 0 to 2 * kOne - 1 and 0 to 3 * kOne - 1.
ChannelStatistics naive_statistics() {
    ChannelStatistics result;
    for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
        double sum = 0, squares = 0;
        for (const std::size_t samples : {2U, 3U}) {
            for (std::size_t i = 0; i < samples * kPixels; ++i) {
                const auto value =
                    static_cast<double>(i / kPixels * kOne + channel * kPixels + i % kPixels);
                sum += value;
                squares += value * value;
            }
        }
        const double mean = sum / (5 * kPixels);
        result.mean.push_back(mean);
        result.standard_deviation.push_back(std::sqrt(squares / (5 * kPixels) - mean * mean));
    }
    return result;
}

TEST_F(Transcode, StatisticsAreThoseOfAllPixels) {
    write_two_files();
    const ClimateReport report = survey_climate(options_.files, options_.source, 2);
    const ChannelStatistics expected = naive_statistics();
    for (std::size_t channel = 0; channel < kClimateChannels; ++channel) {
        EXPECT_NEAR(report.statistics.mean[channel], expected.mean[channel], 1e-9);
        EXPECT_NEAR(report.statistics.standard_deviation[channel],
                    expected.standard_deviation[channel], 1e-8);
    }
    EXPECT_EQ(report.samples, 5);
    EXPECT_EQ(report.samples_without_box, 3);
    EXPECT_EQ(report.boxes_per_category, (std::vector<std::int64_t>{2, 0, 0, 2}));
    EXPECT_EQ(report.minimum[0], 0);
    EXPECT_EQ(report.maximum[15], static_cast<float>(3 * kOne - 1));
    const ClimateReport alone = survey_climate(options_.files, options_.source, 1);
    EXPECT_EQ(alone.statistics.mean, report.statistics.mean);
    EXPECT_EQ(alone.statistics.standard_deviation, report.statistics.standard_deviation);
}

TEST_F(Transcode, ASurveyCountsTheFilesByTheOrderOfTheirBoxesColumns) {
    RawClimateFile raw;
    raw.boxes = {{1, 5, 3, 7, 0}, {4, 1, 6, 3, 1}};  // valid only as ymin, xmin, ymax, xmax
    add_file("a.h5", raw);
    raw.boxes = {{1, 3, 5, 7, 0}, {4, 6, 1, 3, 1}};  // valid only as ymin, ymax, xmin, xmax
    add_file("b.h5", raw);
    add_file("c.h5", raw);
    const ClimateReport report = survey_climate(options_.files, {}, 1);
    EXPECT_EQ(report.files_with_corners, 1);
    EXPECT_EQ(report.files_with_ranges, 2);
}

TEST_F(Transcode, RecordsHoldNormalizedChannelsLastValuesOfEachType) {
    write_two_files();
    const ChannelStatistics expected = naive_statistics();
    struct Row {
        tensor::DType dtype;
        double relative_error;  // half a unit in the last place, and fp32's own
    };
    for (const Row& row :
         {Row{tensor::DType::f32, 1e-6}, Row{tensor::DType::f16, 0.5 / 1024 + 1e-6},
          Row{tensor::DType::bf16, 0.5 / 128 + 1e-6}}) {
        options_.dtype = row.dtype;
        options_.threads = 2;
        std::filesystem::remove_all(options_.output);
        const TranscodeReport report = transcode(options_);
        EXPECT_EQ(report.samples, 5);
        const RecordSet set(options_.output);
        ASSERT_EQ(set.samples(), 5);
        EXPECT_EQ(set.dtype(), row.dtype);
        EXPECT_EQ(set.record_bytes(), kOne * tensor::size_of(row.dtype));
        EXPECT_EQ(set.name(4), "b.h5/2");
        EXPECT_EQ(set.channel_names()[13], "Z1000");
        EXPECT_EQ(set.boxes(2), (std::vector<Box>{{5, 1, 7, 3, 1}, {2, 1, 4, 3, 4}}));
        EXPECT_TRUE(set.boxes(4).empty());
        const auto record = set.record(4);
        for (std::size_t i = 0; i < kOne; ++i) {
            const std::size_t pixel = i / kClimateChannels, channel = i % kClimateChannels;
            const auto value = static_cast<double>(2 * kOne + channel * kPixels + pixel);
            const double wanted =
                (value - expected.mean[channel]) / expected.standard_deviation[channel];
            double got = 0;
            if (row.dtype == tensor::DType::f32) {
                float number = 0;
                std::memcpy(&number, &record[4 * i], 4);
                got = number;
            } else {
                std::uint16_t bits = 0;
                std::memcpy(&bits, &record[2 * i], 2);
                got = row.dtype == tensor::DType::f16 ? number_of_binary16(bits)
                                                      : number_of_bfloat16(bits);
            }
            ASSERT_NEAR(got, wanted, row.relative_error * std::fabs(wanted) + 1e-6) << i;
        }
    }
}

TEST_F(Transcode, ATestSetTakesTheTrainingSetsStatistics) {
    write_two_files();
    transcode(options_);
    const RecordSet training(options_.output);
    TranscodeOptions options = options_;
    options.files.resize(1);
    options.output = folder_.path() / "test";
    options.statistics_from = options_.output;
    transcode(options);
    const RecordSet test(options.output);
    EXPECT_EQ(test.samples(), 2);
    EXPECT_EQ(test.statistics().mean, training.statistics().mean);
    EXPECT_EQ(test.statistics().standard_deviation, training.statistics().standard_deviation);
    EXPECT_TRUE(std::ranges::equal(test.record(1), training.record(1)));
}

TEST_F(Transcode, AConstantChannelBecomesZeros) {
    RawClimateFile raw;
    raw.values.assign(2 * kOne, 7);
    add_file("a.h5", raw);
    transcode(options_);
    const RecordSet set(options_.output);
    EXPECT_EQ(set.statistics().standard_deviation[0], 1);
    for (const std::byte byte : set.record(0)) EXPECT_EQ(byte, std::byte{0});
}

TEST_F(Transcode, SamplesThatAreNotFiniteAreRejectedOrSkipped) {
    RawClimateFile raw;
    raw.values.assign(2 * kOne, 1);
    raw.values[kOne + 5] = kMissingValue;
    add_file("a.h5", raw);
    EXPECT_THAT(refusal(ExitCode::data), HasSubstr("a.h5/1: not all values are finite"));
    options_.skip_bad_samples = true;
    const TranscodeReport report = transcode(options_);
    EXPECT_EQ(report.samples, 1);
    EXPECT_EQ(report.skipped_samples, 1);
    EXPECT_EQ(RecordSet(options_.output).samples(), 1);

    raw.values.assign(2 * kOne, std::numeric_limits<float>::infinity());
    options_.files.clear();
    add_file("b.h5", raw);
    std::filesystem::remove_all(options_.output);
    EXPECT_THAT(refusal(ExitCode::data), HasSubstr("every sample has a value that is not finite"));
}

TEST_F(Transcode, BadSamplesMayBeSkippedOrAbsent) {
    write_two_files();
    options_.skip_bad_samples = true;
    EXPECT_EQ(transcode(options_).samples, 5);
}

TEST_F(Transcode, NumbersThatTheRecordsTypeCannotHoldMakeASampleBad) {
    write_two_files();
    transcode(options_);  // the next call uses these statistics
    RawClimateFile raw;
    raw.values.assign(2 * kOne, 1);
    raw.values[kOne + 5] = 1e30F;
    options_.files.clear();
    add_file("c.h5", raw);
    options_.statistics_from = options_.output;
    options_.output = folder_.path() / "more";
    EXPECT_THAT(refusal(ExitCode::data),
                HasSubstr("c.h5/1: not all values are finite after normalization to fp16"));
    options_.skip_bad_samples = true;
    EXPECT_EQ(transcode(options_).skipped_samples, 1);
    const RecordSet set(options_.output);
    EXPECT_EQ(set.samples(), 1);
    EXPECT_TRUE(set.is_finite(0));
    options_.output = folder_.path() / "wide";
    options_.dtype = tensor::DType::f32;
    EXPECT_EQ(transcode(options_).samples, 2);
}

TEST_F(Transcode, StatisticsOfAnotherPressureLevelAreRejected) {
    write_two_files();
    transcode(options_);
    RawClimateFile raw;
    raw.values.assign(2 * kOne, 16000);
    options_.files.clear();
    add_file("high.h5", raw);
    options_.statistics_from = options_.output;
    options_.output = folder_.path() / "high";
    EXPECT_THAT(refusal(ExitCode::data), testing::AllOf(HasSubstr("channel 13 is Z100, but in"),
                                                        HasSubstr("records"), HasSubstr("Z1000")));
}

TEST_F(Transcode, ChannelsAreThoseOfTheFilesThatNameThem) {
    RawClimateFile raw;
    raw.values.assign(2 * kOne, 16000);
    std::fill_n(raw.values.begin(), kOne, kMissingValue);
    add_file("a.h5", raw);  // the first sample would show the difference
    raw.values.assign(2 * kOne, 16000);
    add_file("b.h5", raw);
    options_.skip_bad_samples = true;
    EXPECT_EQ(transcode(options_).samples, 3);
    EXPECT_EQ(RecordSet(options_.output).channel_names()[13], "Z100");
}

TEST_F(Transcode, NamesThatNoIndexHoldsAreRejectedAtOnce) {
    for (const char* name : {".a.h5", "\xff.h5"}) {
        options_.files = {folder_.path() / name};  // no listing includes this file
        EXPECT_THAT(refusal(ExitCode::data), HasSubstr("name"));
    }
}

TEST_F(Transcode, ALinkIsRejectedBeforeAnyWork) {
    write_two_files();
    std::filesystem::create_directory(folder_.path() / "real");
    std::filesystem::create_directory_symlink(folder_.path() / "real", folder_.path() / "link");
    options_.output = folder_.path() / "link";
    options_.files = {"no such file"};
    try {
        transcode(options_);
        ADD_FAILURE() << "no error";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        EXPECT_THAT(error.what(), HasSubstr("symbolic link"));
    }
}

TEST_F(Transcode, RejectsFilesThatDifferAndFoldersThatHoldSomething) {
    write_two_files();
    RawClimateFile other;
    other.image_extents[3] = 9;
    add_file("c.h5", other);
    EXPECT_THAT(refusal(ExitCode::data), HasSubstr("c.h5' has fields of 6 x 9 pixels"));
    options_.files.pop_back();
    other = {};
    other.values.assign(2 * kOne, 16000);
    add_file("d.h5", other);
    EXPECT_THAT(refusal(ExitCode::data), HasSubstr("another pressure level"));
    options_.files.pop_back();
    transcode(options_);
    EXPECT_THROW(transcode(options_), Error);
    EXPECT_EQ(RecordSet(options_.output).samples(), 5);
}

TEST_F(Transcode, FindsTheFilesOfAFolderInOrder) {
    write_two_files();
    std::ofstream(folder_.path() / "notes.txt") << "text";
    std::ofstream(folder_.path() / ".a.h5.12.tmp.h5") << "text";
    EXPECT_EQ(climate_files_at(folder_.path()), options_.files);
    EXPECT_EQ(climate_files_at("x.h5"), (std::vector<std::filesystem::path>{"x.h5"}));
    std::filesystem::create_directory(folder_.path() / "empty");
    EXPECT_THROW(climate_files_at(folder_.path() / "empty"), Error);
}

}  // namespace
}  // namespace hpcai::data
