// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include <png.h>

#include "decoders.hpp"

namespace hpcai::data {
namespace {

struct PngReader {
    std::span<const std::uint8_t> rest;  // of the file
    LibraryCalls calls = {};
    png_structp png = nullptr;
    png_infop info = nullptr;

    PngReader& operator=(PngReader&&) = delete;
    ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

extern "C" {

[[noreturn]] static void report_png_error(png_structp png, png_const_charp reason) {
    static_cast<PngReader*>(png_get_error_ptr(png))->calls.fail(reason);
}

static void keep_png_warning(png_structp png, png_const_charp text) {
    static_cast<PngReader*>(png_get_error_ptr(png))->calls.warn(text);
}

static void copy_png_bytes(png_structp png, png_bytep target, png_size_t bytes) {
    auto& reader = *static_cast<PngReader*>(png_get_io_ptr(png));
    if (bytes > reader.rest.size()) reader.calls.fail("the file ends early");
    std::memcpy(target, reader.rest.data(), bytes);
    reader.rest = reader.rest.subspan(bytes);
}

static void clip_png_row(png_structp, png_row_infop row, png_bytep values) {
    for (std::size_t i = 0; i < row->rowbytes / 2; ++i) {
        values[i] = values[2 * i] != 0 ? 255 : values[2 * i + 1];
    }
}

}  // extern "C"

/// Reads up to the pixels, without chunks that do not change them.
ImageSize read_png_header(PngReader& reader) {
    const bool is_read = reader.calls.succeed([&reader] {
        reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, report_png_error,
                                            keep_png_warning);
        if (reader.png != nullptr) reader.info = png_create_info_struct(reader.png);
        if (reader.info == nullptr) reader.calls.fail("libpng cannot be used");
        png_set_keep_unknown_chunks(reader.png, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
        png_set_read_fn(reader.png, &reader, copy_png_bytes);
        png_read_info(reader.png, reader.info);
    });
    if (!is_read) throw DecodeError(reader.calls.message());
    return legal_size(png_get_image_width(reader.png, reader.info),
                      png_get_image_height(reader.png, reader.info));
}

/// Reads the whole file as RGB. Like Pillow, clips 16-bit grey, but takes the high byte of other
/// 16-bit values.
void read_png_rows(png_structp png, png_infop info, Image& image) {
    const std::size_t row_bytes = std::size_t{kImageChannels} * image.width;
    png_set_palette_to_rgb(png);
    png_set_expand_gray_1_2_4_to_8(png);
    png_set_strip_alpha(png);
    png_set_gray_to_rgb(png);
    if (png_get_color_type(png, info) == PNG_COLOR_TYPE_GRAY &&
        png_get_bit_depth(png, info) == 16) {
        png_set_read_user_transform_fn(png, clip_png_row);
        png_set_user_transform_info(png, nullptr, 8, kImageChannels);
    } else {
        png_set_strip_16(png);
    }
    const int passes = png_set_interlace_handling(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "row size");
    for (int pass = 0; pass < passes; ++pass) {
        for (int y = 0; y < image.height; ++y) {
            png_read_row(png, image.pixels.data() + y * row_bytes, nullptr);
        }
    }
    png_read_end(png, nullptr);
}

}  // namespace

ImageSize read_png_size(std::span<const std::uint8_t> bytes) {
    PngReader reader{bytes};
    return read_png_header(reader);
}

DecodedImage decode_png(std::span<const std::uint8_t> bytes) {
    PngReader reader{bytes};
    DecodedImage out;
    out.full_size = read_png_header(reader);
    out.image = Image(out.full_size.width, out.full_size.height, 128);
    const bool is_read =
        reader.calls.succeed([&] { read_png_rows(reader.png, reader.info, out.image); });
    (is_read ? out.warning : out.damage) = reader.calls.message();
    return out;
}

}  // namespace hpcai::data
