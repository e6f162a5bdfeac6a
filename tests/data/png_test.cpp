// SPDX-License-Identifier: Apache-2.0
#include <array>

#include <gmock/gmock.h>
#include <zlib.h>

#include <hpcai/data/image_codec.hpp>

#include "fixtures.hpp"
#include "png_files.hpp"

namespace hpcai::data {
namespace {

using test::chunk;
using test::from_hex;
using test::Header;
using test::join;
using test::png;
using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

constexpr std::uint8_t kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6;

/// Returns why a file cannot be decoded completely, or "".
std::string fault(const Bytes& bytes) {
    try {
        return decode_image(bytes).damage;
    } catch (const DecodeError& error) {
        EXPECT_EQ(error.code(), ExitCode::data);
        return error.what();
    }
}

const Bytes kColours = chunk("PLTE", from_hex("0a141e 28323c 46505a"));

struct Case {
    const char* name;
    Header header;    // of one row
    const char* row;  // as stored, in hexadecimal digits
    Bytes chunks;     // between header and row
    const char* pixels;
};

/// The pixels are numpy.asarray(Image.open(file).convert("RGB")) of Pillow 13.
const std::vector<Case> kCases{
    {"Grey1", {4, 1, 1, kGrey}, "a0", {}, "ffffff 000000 ffffff 000000"},
    {"Grey2", {4, 1, 2, kGrey}, "1b", {}, "000000 555555 aaaaaa ffffff"},
    {"Grey4", {3, 1, 4, kGrey}, "17f0", {}, "111111 777777 ffffff"},
    {"Grey8", {3, 1, 8, kGrey}, "01 7f ff", {}, "010101 7f7f7f ffffff"},
    {"Grey8WithTransparency",
     {2, 1, 8, kGrey},
     "64 01",
     chunk("tRNS", from_hex("0064")),
     "646464 010101"},
    {"Grey16", {3, 1, 16, kGrey}, "00c8 00ff 0100", {}, "c8c8c8 ffffff ffffff"},
    {"Grey16WithTransparency",
     {2, 1, 16, kGrey},
     "0001 00c8",
     chunk("tRNS", from_hex("0001")),
     "010101 c8c8c8"},
    {"Rgb8", {2, 1, 8, kRgb}, "000164 7fc8ff", {}, "000164 7fc8ff"},
    {"Rgb8WithTransparency",
     {2, 1, 8, kRgb},
     "000164 7fc8ff",
     chunk("tRNS", from_hex("0000 0001 0064")),
     "000164 7fc8ff"},
    {"Rgb16", {2, 1, 16, kRgb}, "000000ff0100 12ff80ffffff", {}, "000001 1280ff"},
    {"Palette1", {3, 1, 1, kPalette}, "a0", kColours, "28323c 0a141e 28323c"},
    {"Palette2WithAnUnusedIndex",
     {4, 1, 2, kPalette},
     "1b",
     kColours,
     "0a141e 28323c 46505a 000000"},
    {"Palette8WithTransparency",
     {3, 1, 8, kPalette},
     "02 01 00",
     join({kColours, chunk("tRNS", from_hex("0080"))}),
     "46505a 28323c 0a141e"},
    {"GreyAlpha8", {3, 1, 8, kGreyAlpha}, "0000 647f c8ff", {}, "000000 646464 c8c8c8"},
    {"GreyAlpha16", {2, 1, 16, kGreyAlpha}, "01000007 80ffffff", {}, "010101 808080"},
    {"RgbAlpha8", {2, 1, 8, kRgbAlpha}, "01020300 647fc8ff", {}, "010203 647fc8"},
    {"RgbAlpha16", {1, 1, 16, kRgbAlpha}, "00ff0100ffff0000", {}, "0001ff"},
};

class PngOfKind : public testing::TestWithParam<Case> {};

TEST_P(PngOfKind, DecodesToThePixelsOfPillow) {
    const Case& wanted = GetParam();
    const Bytes row = join({{0}, from_hex(wanted.row)});  // after the number of no filter
    for (const Bytes& gamma : {Bytes{}, chunk("gAMA", from_hex("000186a0"))}) {
        const DecodedImage decoded =
            decode_image(png(wanted.header, row, join({gamma, wanted.chunks})));
        EXPECT_EQ(decoded.damage, "");
        EXPECT_EQ(decoded.image.pixels, from_hex(wanted.pixels));
    }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PngOfKind, testing::ValuesIn(kCases),
                         [](const auto& kind) { return kind.param.name; });

/// Returns rows of an interlaced image of 13 x 9 pixels; pixel(x, y) returns one as stored.
template <typename Pixel>
Bytes interlaced_rows(const Pixel& pixel) {
    struct Pass {
        int left, top, step_x, step_y;
    };
    constexpr std::array kAdam7{Pass{0, 0, 8, 8}, Pass{4, 0, 8, 8}, Pass{0, 4, 4, 8},
                                Pass{2, 0, 4, 4}, Pass{0, 2, 2, 4}, Pass{1, 0, 2, 2},
                                Pass{0, 1, 1, 2}};
    Bytes rows;
    for (const Pass& pass : kAdam7) {
        for (int y = pass.top; y < 9; y += pass.step_y) {
            rows.push_back(0);
            for (int x = pass.left; x < 13; x += pass.step_x) {
                for (const int value : pixel(x, y))
                    rows.push_back(static_cast<std::uint8_t>(value));
            }
        }
    }
    return rows;
}

TEST(Png, InterlacedHasItsPixelsInTheirPlaces) {
    const Bytes rgb = interlaced_rows([](int x, int y) { return std::array{x, y, x * y}; });
    const Bytes grey = interlaced_rows([](int x, int y) { return std::array{y / 5, x * 20}; });
    const DecodedImage colour = decode_image(png({13, 9, 8, kRgb, 1}, rgb));
    const DecodedImage clipped = decode_image(png({13, 9, 16, kGrey, 1}, grey));
    for (int y = 0; y < 9; ++y) {
        for (int x = 0; x < 13; ++x) {
            const std::uint8_t* pixel = colour.image.view().row(y) + 3 * x;
            EXPECT_EQ((std::array<int, 3>{pixel[0], pixel[1], pixel[2]}),
                      (std::array{x, y, x * y}));
            EXPECT_EQ(clipped.image.view().row(y)[3 * x + 2], y < 5 ? x * 20 : 255);
        }
    }
}

/// ImageNet-1k has a PNG, n02105855_2933.JPEG.
TEST(Png, InAFileNamedLikeAJpegIsDecodedWhole) {
    const Bytes bytes = test::read_fixture("png_inside.jpg");
    EXPECT_EQ(read_image_size(bytes).width, 45);
    EXPECT_EQ(read_image_size(bytes).height, 35);
    const DecodedImage decoded = decode_image(bytes, {4, PixelBox{20, 10, 5, 7}});
    EXPECT_EQ(decoded.damage + decoded.warning, "");
    EXPECT_EQ(decoded.denominator, 1);
    EXPECT_EQ(decoded.image.pixels, test::read_ppm("png_inside.ppm").pixels);
}

const Bytes kRow{0, 1, 2, 3, 4, 5, 6};  // of two RGB pixels
const Bytes kPlain = png({2, 1, 8, kRgb}, kRow);

TEST(Png, IsBadIfItIsCutAnywhere) {
    ASSERT_EQ(fault(kPlain), "");
    for (std::size_t bytes = 0; bytes < kPlain.size(); ++bytes) {
        EXPECT_NE(fault({kPlain.begin(), kPlain.begin() + static_cast<std::ptrdiff_t>(bytes)}), "")
            << bytes << " of " << kPlain.size() << " bytes";
    }
    EXPECT_EQ(fault({kPlain.begin(), kPlain.end() - 12}), "the file ends early");
}

TEST(Png, IsBadIfAnyBitIsFlipped) {
    for (std::size_t bit = 0; bit < 8 * kPlain.size(); ++bit) {
        Bytes bytes = kPlain;
        bytes[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
        EXPECT_NE(fault(bytes), "") << "bit " << bit;
    }
}

TEST(Png, RefusesHugeDimensionsFromTheHeaderAlone) {
    EXPECT_THAT(fault(png({65500, 65500, 8, kRgb}, kRow)), HasSubstr("65500 x 65500"));
    EXPECT_THAT(fault(png({16385, 1, 8, kRgb}, kRow)), HasSubstr("16384 a side"));
    EXPECT_THAT(fault(png({16000, 16000, 8, kGrey}, kRow)), HasSubstr("16000 x 16000"));
    EXPECT_NE(fault(png({0xffffffff, 1, 8, kRgb}, kRow)), "");
    EXPECT_THROW(read_image_size(png({65500, 65500, 8, kRgb}, kRow)), DecodeError);
}

TEST(Png, RefusesHeadersAndPixelsThatContradict) {
    EXPECT_NE(fault(png({0, 1, 8, kRgb}, kRow)), "");
    EXPECT_NE(fault(png({2, 1, 3, kRgb}, kRow)), "");
    EXPECT_NE(fault(png({2, 1, 8, 5}, kRow)), "");
    EXPECT_NE(fault(png({2, 1, 8, kRgb, 2}, kRow)), "");
    EXPECT_NE(fault(png({2, 1, 8, kPalette}, kRow)), "") << "no palette";
    EXPECT_NE(fault(png({2, 1, 8, kRgb}, kRow, chunk("XXXX", {}))), "") << "critical and unknown";
    EXPECT_NE(fault(png({2, 9, 8, kRgb}, kRow)), "") << "eight rows are missing";
    EXPECT_NE(fault(png({2, 1, 8, kRgb}, {9, 1, 2, 3, 4, 5, 6})), "") << "unknown filter";
}

TEST(Png, IsReadWithAWarningIfItHasMorePixelsThanItsHeader) {
    const DecodedImage decoded = decode_image(png({1, 1, 8, kRgb}, Bytes(400, 0)));
    EXPECT_EQ(decoded.damage, "");
    EXPECT_NE(decoded.warning, "");
    EXPECT_EQ(decoded.image.pixels, Bytes(3, 0));
}

/// A text of 10 kB that would need 10 MB.
TEST(Png, IgnoresChunksThatDoNotChangePixels) {
    const Bytes text = join({{'a', 0, 0}, test::deflated(Bytes(10'000'000, 'x'))});
    const DecodedImage decoded = decode_image(png({2, 1, 8, kRgb}, kRow, chunk("zTXt", text)));
    EXPECT_EQ(decoded.damage + decoded.warning, "");
    EXPECT_EQ(decoded.image.pixels, Bytes(kRow.begin() + 1, kRow.end()));
}

}  // namespace
}  // namespace hpcai::data
