// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/generate.hpp>

#include "fixtures.hpp"

namespace hpcai::data {
namespace {

class GenerateClimate : public testing::Test {
protected:
    GenerateClimate() {
        options_.file = folder_.path() / "set.h5";
        options_.samples = 5;
        options_.split = Split::validation;
        options_.settings.height = 64;
        options_.settings.width = 96;
    }

    test::TemporaryFolder folder_;
    GenerateClimateOptions options_;
};

TEST_F(GenerateClimate, WritesTheGeneratorsSamplesInOrder) {
    generate_climate(options_, 2);
    const ClimateFile file(options_.file);
    ASSERT_EQ(file.samples(), 5);
    EXPECT_EQ(file.box_order(), BoxOrder::corners);
    EXPECT_EQ(file.level(), GeopotentialLevel::hpa_1000);
    EXPECT_EQ(file.dropped_boxes(), 0);
    const ClimateGenerator generator(options_.settings);
    std::vector<float> expected(generator.elements()), stored(generator.elements());
    std::vector<Box> boxes;
    for (std::uint32_t i = 0; i < 5; ++i) {
        generator.sample(Split::validation, i, FieldLayout::channels_first, expected, boxes);
        file.read(i, 1, stored);
        EXPECT_EQ(stored, expected) << i;
        EXPECT_EQ(file.boxes(i), boxes) << i;
    }
}

TEST_F(GenerateClimate, WritesTheSameFileForEveryNumberOfThreads) {
    generate_climate(options_, 1);
    const auto alone = test::read_file_bytes(options_.file);
    std::filesystem::remove(options_.file);
    generate_climate(options_, 3);
    EXPECT_TRUE(test::read_file_bytes(options_.file) == alone);
}

TEST_F(GenerateClimate, RejectsAnExistingFileAndAMissingFolder) {
    test::write_file_bytes(options_.file, {1});
    EXPECT_THROW(generate_climate(options_, 1), Error);
    EXPECT_EQ(test::read_file_bytes(options_.file).size(), 1U);
    options_.file = folder_.path() / "none" / "set.h5";
    EXPECT_THROW(generate_climate(options_, 1), Error);
}

}  // namespace
}  // namespace hpcai::data
