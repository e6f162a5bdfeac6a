// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/data/image_codec.hpp>

#include "fixtures.hpp"
#include "pixel_errors.hpp"

namespace hpcai::data {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::string refusal(const Bytes& bytes) {
    try {
        decode_image(bytes);
    } catch (const DecodeError& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        return error.what();
    }
    return "";
}

/// Returns the file with another height and width in its frame header.
Bytes with_size(Bytes bytes, int width, int height) {
    for (std::size_t i = 0; i + 9 < bytes.size(); ++i) {
        if (bytes[i] != 0xff || (bytes[i + 1] != 0xc0 && bytes[i + 1] != 0xc2)) continue;
        bytes[i + 5] = static_cast<std::uint8_t>(height >> 8);
        bytes[i + 6] = static_cast<std::uint8_t>(height);
        bytes[i + 7] = static_cast<std::uint8_t>(width >> 8);
        bytes[i + 8] = static_cast<std::uint8_t>(width);
        return bytes;
    }
    throw std::runtime_error("no frame header");
}

class JpegOfKind : public testing::TestWithParam<const char*> {};

TEST_P(JpegOfKind, DecodesToThePixelsOfPillow) {
    const std::string name = GetParam();
    const DecodedImage decoded = decode_image(test::read_fixture(name + ".jpg"));
    const Image expected = test::read_ppm(name + ".ppm");
    EXPECT_EQ(decoded.damage + decoded.warning, "");
    EXPECT_EQ(decoded.full_size.width, 45);
    EXPECT_EQ(decoded.full_size.height, 35);
    ASSERT_EQ(decoded.image.width, expected.width);
    ASSERT_EQ(decoded.image.height, expected.height);
    test::PixelErrors errors("JPEG decoding", 0, 0);
    errors.add(decoded.image.pixels, expected.pixels, name);
}

/// Compares a region of `part` with `whole`, both divided by `denominator`.
void compare_region(const DecodedImage& part, const DecodedImage& whole, const PixelBox& wanted,
                    test::PixelErrors& errors) {
    ASSERT_LE(part.left, wanted.left);
    ASSERT_EQ(part.top, wanted.top);
    ASSERT_GE(part.left + part.image.width, wanted.left + wanted.width);
    ASSERT_EQ(part.image.height, wanted.height);
    const auto bytes = static_cast<std::size_t>(wanted.width) * 3;
    for (int y = 0; y < wanted.height; ++y) {
        errors.add({part.image.view().row(y) + (wanted.left - part.left) * 3, bytes},
                   {whole.image.view().row(y + wanted.top) + wanted.left * 3, bytes},
                   fmt::format("{} x {} from ({}, {})", wanted.width, wanted.height, wanted.left,
                               wanted.top));
    }
}

TEST_P(JpegOfKind, ARegionHasThePixelsOfTheWholePicture) {
    test::PixelErrors errors("JPEG decoding, a region against the whole", 0, 0);
    const Bytes bytes = test::read_fixture(std::string(GetParam()) + ".jpg");
    for (const int denominator : {1, 2, 4, 8}) {
        const DecodedImage whole = decode_image(bytes, {denominator, std::nullopt});
        for (int left = 0; left < 45; ++left) {
            const PixelBox box{left, left * 7 % 35, 1 + left * 11 % (45 - left),
                               1 + left % (35 - left * 7 % 35)};
            const DecodedImage part = decode_image(bytes, {denominator, box});
            compare_region(part, whole, downscaled_box(box, denominator), errors);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Fixtures, JpegOfKind,
                         testing::Values("yuv420", "yuv422", "yuv444", "progressive", "grey",
                                         "cmyk", "cmyk_without_adobe", "ycck", "oriented"),
                         [](const auto& kind) { return std::string(kind.param); });

struct Warned {
    const char* file;
    const char* warning;
};

class JpegWithWarning : public testing::TestWithParam<Warned> {};

TEST_P(JpegWithWarning, DecodesToThePixelsOfPillow) {
    const std::string file = GetParam().file;
    const DecodedImage decoded = decode_image(test::read_fixture(file + ".jpg"));
    EXPECT_EQ(decoded.damage, "");
    EXPECT_EQ(decoded.warning, GetParam().warning);
    EXPECT_EQ(decoded.image.pixels, test::read_ppm(file + ".ppm").pixels);
}

INSTANTIATE_TEST_SUITE_P(
    Fixtures, JpegWithWarning,
    testing::Values(Warned{"warning_version", "Warning: unknown JFIF revision number 2.09"},
                    Warned{"warning_scan_parameters", "Invalid SOS parameters for sequential JPEG"},
                    Warned{"warning_extraneous_bytes",
                           "Corrupt JPEG data: 3 extraneous bytes before marker 0xdb"},
                    Warned{"warning_corrupt_data",
                           "Corrupt JPEG data: 363 extraneous bytes before marker 0xd9"},
                    Warned{"warning_early_end",
                           "Corrupt JPEG data: premature end of data segment"}),
    [](const auto& kind) { return std::string(kind.param.file); });

TEST(Jpeg, NamesOtherFormatsAndEmptyFiles) {
    struct Format {
        std::string_view begin, reason;
    };
    for (const Format& format :
         {Format{"GIF89a", "a GIF file, not a JPEG or PNG"},
          Format{"RIFF1234WEBP", "a WebP file, not a JPEG or PNG"},
          Format{"BM1234", "a BMP file, not a JPEG or PNG"},
          Format{"II*1234", "a TIFF file, not a JPEG or PNG"},
          Format{"<html>", "not a JPEG or PNG"}, Format{"", "the file is empty"}}) {
        EXPECT_EQ(refusal({format.begin.begin(), format.begin.end()}), format.reason);
    }
    EXPECT_NE(refusal({0xff, 0xd8, 0xff, 0xd9}), "");
}

TEST(Jpeg, RejectsHugeDimensionsFromTheHeaderAlone) {
    const Bytes plain = test::read_fixture("yuv420.jpg");
    EXPECT_NE(refusal(with_size(plain, 65500, 65500)).find("65500 x 65500"), std::string::npos);
    EXPECT_NE(refusal(with_size(plain, 16385, 1)).find("16384 a side"), std::string::npos);
    EXPECT_NE(refusal(with_size(plain, 16000, 16000)).find("16000 x 16000"), std::string::npos);
    EXPECT_THROW(read_image_size(with_size(plain, 65500, 65500)), DecodeError);
}

/// Pillow refuses all of these files, too.
TEST(Jpeg, IsBadIfItIsCutAnywhere) {
    for (const char* name : {"yuv420.jpg", "progressive.jpg", "oriented.jpg"}) {
        Bytes bytes = test::read_fixture(name);
        while (!bytes.empty()) {
            bytes.pop_back();
            std::string reason = "";
            try {
                reason = decode_image(bytes).damage;
            } catch (const DecodeError& error) {
                reason = error.what();
            }
            EXPECT_NE(reason, "") << bytes.size() << " bytes of " << name;
        }
    }
}

std::optional<ImageSize> size_for_gpu(const Bytes& bytes) {
    return baseline_jpeg_size(std::as_bytes(std::span(bytes)));
}

TEST(Jpeg, SuitsTheDecoderOfAGpuIfItIsABaselineFileOfYcbcr) {
    for (const char* name : {"yuv420.jpg", "yuv422.jpg", "yuv444.jpg"}) {
        const Bytes bytes = test::read_fixture(name);
        EXPECT_EQ(size_for_gpu(bytes), (ImageSize{45, 35})) << name;
        EXPECT_EQ(size_for_gpu({bytes.begin(), bytes.end() - 1}), std::nullopt);
    }
    for (const char* name : {"progressive.jpg", "grey.jpg", "cmyk.jpg", "ycck.jpg"}) {
        EXPECT_EQ(size_for_gpu(test::read_fixture(name)), std::nullopt) << name;
    }
    const Bytes png{0x89, 'P', 'N', 'G'};
    EXPECT_EQ(size_for_gpu(png), std::nullopt);
    EXPECT_THROW(size_for_gpu({1, 2, 3}), DecodeError);
}

TEST(Jpeg, ATruncatedFileIsDamagedWhateverPartIsDecoded) {
    Bytes bytes = test::read_fixture("yuv420.jpg");
    bytes.resize(bytes.size() * 3 / 4);
    const DecodedImage whole = decode_image(bytes);
    EXPECT_EQ(whole.damage, "the file ends early");
    EXPECT_EQ(whole.image.height, 35);
    EXPECT_NE(decode_image(bytes, {1, PixelBox{0, 0, 45, 4}}).damage, "");
}

TEST(Jpeg, SurvivesRandomMutationsOfValidFiles) {
    int refused = 0, damaged = 0, accepted = 0;
    for (const char* name : {"yuv420.jpg", "progressive.jpg", "cmyk.jpg"}) {
        const Bytes valid = test::read_fixture(name);
        for (std::uint32_t trial = 0; trial < 400; ++trial) {
            CounterStream random(7, RandomPurpose::test, trial);
            Bytes bytes = valid;
            for (std::uint32_t n = 1 + random.below(12); n > 0; --n) {
                bytes[random.below(static_cast<std::uint32_t>(bytes.size()))] =
                    static_cast<std::uint8_t>(random.next_u32());
            }
            if (random.below(4) == 0) {
                bytes.resize(1 + random.below(static_cast<std::uint32_t>(bytes.size())));
            }
            try {
                DecodeRequest request{1 << random.below(4), std::nullopt};
                if (random.below(2) == 0) {
                    const ImageSize size = read_image_size(bytes);
                    request.region = PixelBox{size.width / 3, size.height / 3, (size.width + 2) / 3,
                                              (size.height + 2) / 3};
                }
                ++(decode_image(bytes, request).damage.empty() ? accepted : damaged);
            } catch (const DecodeError&) {
                ++refused;
            }
        }
    }
    EXPECT_GT(refused, 100);
    EXPECT_GT(damaged, 100);
    EXPECT_GT(accepted, 20);
}

TEST(Jpeg, EncodingAndDecodingKeepsAPictureClose) {
    const Image source = test::read_ppm("yuv444.ppm");
    const DecodedImage decoded = decode_image(encode_jpeg(source.view(), 95));
    ASSERT_EQ(decoded.image.pixels.size(), source.pixels.size());
    double squares = 0;
    for (std::size_t i = 0; i < source.pixels.size(); ++i) {
        squares += std::pow(decoded.image.pixels[i] - source.pixels[i], 2);
    }
    EXPECT_LT(std::sqrt(squares / static_cast<double>(source.pixels.size())), 20.0);
}

}  // namespace
}  // namespace hpcai::data
