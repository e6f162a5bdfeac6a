// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/data/field_picture.hpp>
#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/transcode.hpp>

#include "climate_files.hpp"
#include "fixtures.hpp"

namespace hpcai::data {
namespace {

TEST(Png, HoldsThePixels) {
    Image image(37, 11);
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
        image.pixels[i] = static_cast<std::uint8_t>(i * i / 7);
    }
    const DecodedImage decoded = decode_image(encode_png(image.view()));
    EXPECT_EQ(decoded.image.width, 37);
    EXPECT_EQ(decoded.image.height, 11);
    EXPECT_EQ(decoded.image.pixels, image.pixels);
    EXPECT_EQ(decoded.damage + decoded.warning, "");
    const ImageView part = image.view().crop({30, 4, 7, 5});
    EXPECT_EQ(decode_image(encode_png(part)).image.pixels[3 * 7], part.row(1)[0]);
}

std::array<int, 3> color_at(const Image& image, int x, int y) {
    const auto at = static_cast<std::size_t>(y * image.width + x) * 3;
    return {image.pixels[at], image.pixels[at + 1], image.pixels[at + 2]};
}

/// Brightness grows with the row.
LabelledField northward_field() {
    LabelledField field{200, 300, std::vector<float>(200 * 300), {}};
    for (std::size_t i = 0; i < field.values.size(); ++i) {
        field.values[i] = static_cast<float>(i / 300);
    }
    return field;
}

TEST(FieldPicture, HasNorthAtTheTopAndBrightForHigh) {
    const Image image = draw_field(northward_field());
    EXPECT_EQ(image.width, 3 * 300);
    EXPECT_EQ(image.height, 3 * 200);
    EXPECT_EQ(color_at(image, 0, 0), (std::array{253, 231, 37}));
    EXPECT_EQ(color_at(image, 0, image.height - 1), (std::array{68, 1, 84}));
}

TEST(FieldPicture, FramesBoxesInTheirCategorysColour) {
    LabelledField field = northward_field();
    field.boxes = {{50, 20, 120, 80, 2}, {200, 100, 260, 199, 4}};
    const Image image = draw_field(field);
    const std::array red{255, 50, 50}, blue{0, 230, 255};
    EXPECT_EQ(color_at(image, 3 * 50, 3 * (200 - 20) - 1), red);   // lower left
    EXPECT_EQ(color_at(image, 3 * 120 - 1, 3 * (200 - 80)), red);  // upper right
    EXPECT_EQ(color_at(image, 3 * 260 - 1, 3 * (200 - 199)), blue);
    EXPECT_NE(color_at(image, 3 * 85, 3 * (200 - 50)), red);  // inside
}

TEST(FieldPicture, DashesTheFramesOfDetectionsAndPutsTheirLabelsBelow) {
    LabelledField field = northward_field();
    field.detections = {{50, 20, 120, 80, 2}};
    const Image image = draw_field(field);
    const std::array red{255, 50, 50};
    std::string top;  // the upper edge from the corner on
    for (int x = 3 * 50; x < 3 * 50 + 24; ++x)
        top += color_at(image, x, 3 * (200 - 80)) == red ? '#' : '.';
    EXPECT_EQ(top, "######......######......");
    EXPECT_EQ(color_at(image, 3 * 50, 3 * (200 - 80) + 5), red);
    EXPECT_NE(color_at(image, 3 * 50, 3 * (200 - 80) + 6), red);
    EXPECT_EQ(color_at(image, 3 * 50, 3 * (200 - 20) + 1), red) << "the label";
    EXPECT_NE(color_at(image, 3 * 50, 3 * (200 - 80) - 1), red) << "above";
}

TEST(FieldPicture, ClipsBoxesThatLeaveTheField) {
    LabelledField field = northward_field();
    field.detections = {{-1e9F, -1e9F, 1e9F, 1e9F, 2}};
    const Image image = draw_field(field);
    EXPECT_EQ(color_at(image, 0, 0), (std::array{255, 50, 50}));
    EXPECT_EQ(color_at(image, image.width - 1, 0), (std::array{255, 50, 50}));
}

TEST(FieldPicture, MakesAChannelOfASyntheticSample) {
    const ClimateGenerator generator({.height = 64, .width = 96, .seed = 3});
    std::vector<float> fields(generator.elements());
    std::vector<Box> boxes;
    generator.sample(Split::validation, 2, FieldLayout::channels_last, fields, boxes);
    const LabelledField field = read_field(generator, 2, 5);
    EXPECT_EQ(field.boxes, boxes);
    ASSERT_EQ(field.values.size(), 64U * 96U);
    EXPECT_EQ(field.values[97], fields[97 * 16 + 5]);
}

TEST(FieldPicture, ShowsWhatIsNotFinite) {
    LabelledField field = northward_field();
    field.values[0] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(color_at(draw_field(field), 0, 3 * 200 - 1), (std::array{255, 0, 255}));
    field.values.assign(field.values.size(), 5);
    EXPECT_NO_THROW(draw_field(field));
}

TEST(FieldPicture, TakesOneChannelFromFilesAndRecordsOfEachType) {
    const test::TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "a.h5";
    test::RawClimateFile raw;
    raw.boxes = {{1, 5, 3, 7, 1}};
    test::write_raw(path, raw);
    const ClimateFileSettings settings{BoxOrder::corners};
    const LabelledField stored = read_field(ClimateFile(path, settings), 1, 3);
    EXPECT_EQ(stored.height, 6);
    EXPECT_EQ(stored.width, 8);
    EXPECT_EQ(stored.values.front(), 16 * 48 + 3 * 48);
    EXPECT_EQ(stored.values.back(), 16 * 48 + 4 * 48 - 1);
    for (const tensor::DType dtype :
         {tensor::DType::f32, tensor::DType::f16, tensor::DType::bf16}) {
        TranscodeOptions options;
        options.files = {path};
        options.output = folder.path() / std::string(tensor::name_of(dtype));
        options.dtype = dtype;
        options.source = settings;
        transcode(options);
        const RecordSet records(options.output);
        const LabelledField field = read_field(records, 0, 3);
        EXPECT_EQ(field.boxes, (std::vector<Box>{{5, 1, 7, 3, 2}}));
        for (std::size_t i = 0; i < field.values.size(); ++i) {
            const double value = records.statistics().mean[3] +
                                 records.statistics().standard_deviation[3] * field.values[i];
            EXPECT_NEAR(value, 3.0 * 48 + static_cast<double>(i), 4) << tensor::name_of(dtype);
        }
    }
}

}  // namespace
}  // namespace hpcai::data
