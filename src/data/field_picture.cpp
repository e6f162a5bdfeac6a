// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <iterator>

#include <png.h>

#include <hpcai/data/field_picture.hpp>

#include "field_numbers.hpp"

namespace hpcai::data {
namespace {

using PixelColor = std::array<std::uint8_t, kImageChannels>;

/// Nine evenly spaced colours of "viridis", dark to bright (Smith and van der Walt, 2015).
constexpr std::array<PixelColor, 9> kRamp{{{68, 1, 84},
                                           {71, 44, 122},
                                           {59, 81, 139},
                                           {44, 113, 142},
                                           {33, 144, 141},
                                           {39, 173, 129},
                                           {92, 200, 99},
                                           {170, 220, 50},
                                           {253, 231, 37}}};
constexpr PixelColor kNotFiniteColor{255, 0, 255};
constexpr PixelColor kUnknownCategoryColor{255, 255, 255};

struct CategoryStyle {
    std::string_view name;
    PixelColor color;
};
constexpr std::array<CategoryStyle, kClimateCategories> kStyles{{
    {"TD", {255, 170, 0}},
    {"TC", {255, 50, 50}},
    {"ETC", {255, 255, 255}},
    {"AR", {0, 230, 255}},
}};

/// A letter of 3 x 5 pixels: rows from the top, where bit 2 is the leftmost pixel.
struct Glyph {
    char letter;
    std::array<std::uint8_t, 5> rows;
};
constexpr std::array<Glyph, 6> kGlyphs{{{'A', {2, 5, 7, 5, 5}},
                                        {'C', {7, 4, 4, 4, 7}},
                                        {'D', {6, 5, 5, 5, 6}},
                                        {'E', {7, 4, 6, 4, 7}},
                                        {'R', {6, 5, 6, 5, 5}},
                                        {'T', {7, 2, 2, 2, 2}}}};
constexpr int kGlyphWidth = 3, kGlyphHeight = 5;
constexpr int kMaxEnlargedHeight = 768;  // pixels
constexpr int kMaxScale = 4;
constexpr int kLineWidth = 2;   // pixels
constexpr int kDashLength = 6;  // pixels, also of the gaps
constexpr int kTextScale = 3;

void set_pixel(Image& image, int x, int y, const PixelColor& color) {
    if (x < 0 || y < 0 || x >= image.width || y >= image.height) return;
    const std::ptrdiff_t pixel = std::ptrdiff_t{1} * y * image.width + x;
    std::ranges::copy(color, image.pixels.begin() + kImageChannels * pixel);
}

void fill(Image& image, const PixelBox& box, const PixelColor& color, bool is_dashed = false) {
    for (int y = 0; y < box.height; ++y) {
        for (int x = 0; x < box.width; ++x) {
            if (!is_dashed || (x + y) / kDashLength % 2 == 0)
                set_pixel(image, box.left + x, box.top + y, color);
        }
    }
}

struct Range {
    float low = 0, high = 1;
};

Range range_of(const std::vector<float>& values) {
    std::vector<float> finite;
    std::copy_if(values.begin(), values.end(), std::back_inserter(finite),
                 [](float value) { return std::isfinite(value); });
    if (finite.empty()) return {};
    const auto quantile = [&finite](double share) {
        const auto position = finite.begin() + static_cast<std::ptrdiff_t>(
                                                   share * static_cast<double>(finite.size() - 1));
        std::nth_element(finite.begin(), position, finite.end());
        return *position;
    };
    return {quantile(0.005), quantile(0.995)};
}

PixelColor color_of(float value, const Range& range) {
    if (!std::isfinite(value)) return kNotFiniteColor;
    const float share = range.high > range.low
                            ? std::clamp((value - range.low) / (range.high - range.low), 0.0F, 1.0F)
                            : 0.5F;
    const float position = share * static_cast<float>(kRamp.size() - 1);
    const auto below = std::min(static_cast<std::size_t>(position), kRamp.size() - 2);
    const float rest = position - static_cast<float>(below);
    PixelColor color{};
    for (std::size_t c = 0; c < color.size(); ++c) {
        const float mixed = static_cast<float>(kRamp[below][c]) * (1 - rest) +
                            static_cast<float>(kRamp[below + 1][c]) * rest;
        color[c] = static_cast<std::uint8_t>(std::lround(mixed));
    }
    return color;
}

void draw_frame(Image& image, const PixelBox& box, const PixelColor& color, bool is_dashed) {
    const int right = box.left + box.width, bottom = box.top + box.height;
    fill(image, {box.left, box.top, box.width, kLineWidth}, color, is_dashed);
    fill(image, {box.left, bottom - kLineWidth, box.width, kLineWidth}, color, is_dashed);
    fill(image, {box.left, box.top, kLineWidth, box.height}, color, is_dashed);
    fill(image, {right - kLineWidth, box.top, kLineWidth, box.height}, color, is_dashed);
}

/// Draws a category's name on a rectangle in its colour; (left, top) is the upper left corner.
void draw_name(Image& image, int left, int top, const CategoryStyle& style) {
    const int letters = static_cast<int>(style.name.size());
    fill(image,
         {left, top, (letters * (kGlyphWidth + 1) + 1) * kTextScale,
          (kGlyphHeight + 2) * kTextScale},
         style.color);
    for (int i = 0; i < letters; ++i) {
        const char letter = style.name[i];
        const auto glyph = std::find_if(kGlyphs.begin(), kGlyphs.end(),
                                        [letter](const Glyph& g) { return g.letter == letter; });
        ensure(glyph != kGlyphs.end(), "no glyph for '{}'", letter);
        for (int bit = 0; bit < kGlyphWidth * kGlyphHeight; ++bit) {
            const int x = bit % kGlyphWidth, y = bit / kGlyphWidth;
            if (((glyph->rows[y] >> (kGlyphWidth - 1 - x)) & 1) == 0) continue;
            fill(image,
                 {left + (i * (kGlyphWidth + 1) + 1 + x) * kTextScale, top + (y + 1) * kTextScale,
                  kTextScale, kTextScale},
                 {0, 0, 0});
        }
    }
}

CategoryStyle style_of(std::int32_t category) {
    if (category < 1 || category > kClimateCategories) return {"", kUnknownCategoryColor};
    return kStyles[category - 1];
}

/// Draws a frame and its category: below a detection, else above, or inside if there is no space.
void draw_box(Image& image, const Box& box, int scale, bool is_detection) {
    const auto pixel = [scale = static_cast<float>(scale)](float edge, int limit) {
        const auto end = static_cast<float>(limit);
        return static_cast<int>(std::lround(std::clamp(edge * scale, 0.0F, end)));
    };
    const CategoryStyle style = style_of(box.category);
    const int left = pixel(box.x1, image.width), top = image.height - pixel(box.y2, image.height);
    const int bottom = image.height - pixel(box.y1, image.height);
    const PixelBox frame{left, top, pixel(box.x2, image.width) - left, bottom - top};
    draw_frame(image, frame, style.color, is_detection);
    const int height = (kGlyphHeight + 2) * kTextScale;
    const int above = top >= height ? top - height : top;
    const int below = bottom + height <= image.height ? bottom : bottom - height;
    draw_name(image, left, is_detection ? below : above, style);
}

}  // namespace

LabelledField read_field(const ClimateFile& file, std::int64_t sample, int channel) {
    const std::ptrdiff_t pixels = std::ptrdiff_t{1} * file.height() * file.width();
    std::vector<float> fields(pixels * kClimateChannels);
    file.read(sample, 1, fields);
    const auto first = fields.begin() + pixels * channel;
    return {file.height(), file.width(), {first, first + pixels}, file.boxes(sample)};
}

LabelledField read_field(const RecordSet& records, std::int64_t sample, int channel) {
    LabelledField field{records.height(), records.width(), {}, records.boxes(sample)};
    std::vector<float> numbers(records.record_bytes() / tensor::size_of(records.dtype()));
    convert_to_fp32(records.record(sample), records.dtype(), numbers);
    for (std::size_t at = channel; at < numbers.size(); at += records.channels()) {
        field.values.push_back(numbers[at]);
    }
    return field;
}

LabelledField read_field(const ClimateGenerator& generator, std::int64_t sample, int channel) {
    const ClimateSettings& settings = generator.settings();
    LabelledField field{settings.height, settings.width, {}, {}};
    std::vector<float> fields(generator.elements());
    generator.sample(Split::validation, static_cast<std::uint32_t>(sample),
                     FieldLayout::channels_first, fields, field.boxes);
    const auto first = fields.begin() + std::ptrdiff_t{1} * channel * field.height * field.width;
    field.values.assign(first, first + std::ptrdiff_t{1} * field.height * field.width);
    return field;
}

Image draw_field(const LabelledField& field) {
    const int scale = std::clamp(kMaxEnlargedHeight / field.height, 1, kMaxScale);
    Image image(field.width * scale, field.height * scale);
    const Range range = range_of(field.values);
    for (int y = 0; y < image.height; ++y) {
        const std::size_t row = field.height - 1 - y / scale;
        for (int x = 0; x < image.width; ++x) {
            const float value = field.values[row * field.width + x / scale];
            set_pixel(image, x, y, color_of(value, range));
        }
    }
    for (const Box& box : field.boxes) draw_box(image, box, scale, false);
    for (const Box& box : field.detections) draw_box(image, box, scale, true);
    return image;
}

std::vector<std::uint8_t> encode_png(const ImageView& image) {
    png_image header{};
    header.version = PNG_IMAGE_VERSION;
    header.width = static_cast<png_uint_32>(image.width);
    header.height = static_cast<png_uint_32>(image.height);
    header.format = PNG_FORMAT_RGB;
    png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(header);
    std::vector<std::uint8_t> file(bytes);
    const auto stride = static_cast<png_int_32>(image.stride_bytes);
    const int written =
        png_image_write_to_memory(&header, file.data(), &bytes, 0, image.pixels, stride, nullptr);
    ensure(written != 0, "PNG encoder: {}", header.message);
    file.resize(bytes);
    return file;
}

}  // namespace hpcai::data
