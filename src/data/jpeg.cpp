// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <jpeglib.h>  // needs <cstdio> before it

#include <hpcai/base/rounding.hpp>

#include "decoders.hpp"

namespace hpcai::data {
namespace {

constexpr int kMaxScans = 200;  // a few kB of empty scans could keep a thread busy for minutes

/// libjpeg's error manager, which by default exits the process, followed by our own state.
struct JpegErrors {
    JpegErrors();
    jpeg_error_mgr manager = {};  // first member, because libjpeg has only its address
    LibraryCalls calls = {};
};

LibraryCalls& calls_of(const auto* info) {
    return reinterpret_cast<JpegErrors*>(info->err)->calls;
}

extern "C" {

[[noreturn]] static void report_error(j_common_ptr info) {
    std::array<char, JMSG_LENGTH_MAX> text;
    info->err->format_message(info, text.data());
    calls_of(info).fail(text.data());
}

static void keep_first_warning(j_common_ptr info, int level) {
    if (level >= 0 || info->err->num_warnings++ > 0) return;  // positive levels are trace output
    std::array<char, JMSG_LENGTH_MAX> text;
    info->err->format_message(info, text.data());
    calls_of(info).warn(text.data());
}

static void limit_scans(j_common_ptr info) {
    const int scan = reinterpret_cast<j_decompress_ptr>(info)->input_scan_number;
    if (scan > kMaxScans) calls_of(info).fail("too many scans");
}

[[noreturn]] static boolean report_end(j_decompress_ptr info) {
    calls_of(info).fail("the file ends early");
}

}  // extern "C"

JpegErrors::JpegErrors() {
    jpeg_std_error(&manager);
    manager.error_exit = report_error;
    manager.emit_message = keep_first_warning;
}

struct JpegReader {
    JpegErrors errors;
    jpeg_progress_mgr progress = {};
    jpeg_decompress_struct info = {};

    JpegReader& operator=(JpegReader&&) = delete;
    ~JpegReader() { jpeg_destroy_decompress(&info); }
};

ImageSize read_jpeg_header(std::span<const std::uint8_t> bytes, JpegReader& reader) {
    jpeg_decompress_struct& info = reader.info;
    info.err = &reader.errors.manager;
    const bool is_read = reader.errors.calls.succeed([&] {
        jpeg_create_decompress(&info);
        reader.progress.progress_monitor = limit_scans;
        info.progress = &reader.progress;
        jpeg_mem_src(&info, bytes.data(), static_cast<unsigned long>(bytes.size()));
        info.src->fill_input_buffer = report_end;
        jpeg_read_header(&info, TRUE);
    });
    if (!is_read) throw DecodeError(reader.errors.calls.message());
    const int components = info.num_components;
    if (components != 1 && components != 3 && components != 4) {
        throw DecodeError(fmt::format("{} colour components, expected 1, 3 or 4", components));
    }
    return legal_size(info.image_width, info.image_height);
}

/// Converts one row of CMYK to RGB like Pillow, which takes all files to be inverted as Adobe's.
void convert_cmyk(const std::uint8_t* cmyk, int width, std::uint8_t* target) {
    for (int x = 0; x < width; ++x) {
        const unsigned light = cmyk[4 * x + 3];
        for (int c = 0; c < kImageChannels; ++c) {
            const unsigned absorbed = (255U - cmyk[4 * x + c]) * light + 128;  // of 255 * 256
            target[3 * x + c] =
                static_cast<std::uint8_t>(light - (((absorbed >> 8) + absorbed) >> 8));
        }
    }
}

/// Returns the region to decode, in downscaled pixels. It has one more column at either side than
/// requested, because libjpeg upsamples chroma only within the decoded region.
PixelBox downscaled_region(const DecodeRequest& request, const jpeg_decompress_struct& info) {
    const int width = static_cast<int>(info.output_width);
    const int height = static_cast<int>(info.output_height);
    if (!request.region) return {0, 0, width, height};
    const PixelBox box = downscaled_box(*request.region, request.denominator);
    ensure(box.left >= 0 && box.top >= 0 && box.width > 0 && box.height > 0 &&
               box.left + box.width <= width && box.top + box.height <= height,
           "region ({}, {}, {} x {}) of a {} x {} JPEG", request.region->left, request.region->top,
           request.region->width, request.region->height, info.image_width, info.image_height);
    const int left = std::max(0, box.left - 1);
    const int right = std::min(width, box.left + box.width + 1);
    return {left, box.top, right - left, box.height};
}

/// Starts decoding and skips to the region. Allocates `out.image` for its rows, which start at
/// column `out.left`. Throws DecodeError.
void start_decoding(JpegReader& reader, const DecodeRequest& request, DecodedImage& out) {
    jpeg_decompress_struct& info = reader.info;
    PixelBox region;
    JDIMENSION left = 0;
    const bool is_started = reader.errors.calls.succeed([&] {
        const bool is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
        info.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
        info.scale_num = static_cast<unsigned>(8 / request.denominator);
        info.scale_denom = 8;
        jpeg_start_decompress(&info);
        region = downscaled_region(request, info);
        left = static_cast<JDIMENSION>(region.left);
        auto width = static_cast<JDIMENSION>(region.width);
        if (width != info.output_width) jpeg_crop_scanline(&info, &left, &width);
        if (region.top > 0) jpeg_skip_scanlines(&info, static_cast<JDIMENSION>(region.top));
    });
    if (!is_started) throw DecodeError(reader.errors.calls.message());
    out.denominator = request.denominator;
    out.left = static_cast<int>(left);
    out.top = region.top;
    out.image = Image(static_cast<int>(info.output_width), region.height, 128);
}

/// Reads rows until `image` is full, or returns false if decoding fails.
bool read_jpeg_rows(JpegReader& reader, Image& image) {
    jpeg_decompress_struct& info = reader.info;
    const bool is_cmyk = info.out_color_space == JCS_CMYK;
    std::vector<std::uint8_t> cmyk(is_cmyk ? std::size_t{4} * image.width : 0);
    return reader.errors.calls.succeed([&] {
        const std::size_t row_bytes = std::size_t{kImageChannels} * image.width;
        std::uint8_t* out = image.pixels.data();
        for (int y = 0; y < image.height; ++y, out += row_bytes) {
            JSAMPROW row = is_cmyk ? cmyk.data() : out;
            if (jpeg_read_scanlines(&info, &row, 1) != 1) return;
            if (is_cmyk) convert_cmyk(cmyk.data(), image.width, out);
        }
        if (info.output_scanline == info.output_height) jpeg_finish_decompress(&info);
    });
}

}  // namespace

PixelBox downscaled_box(const PixelBox& box, int denominator) {
    const int left = box.left / denominator;
    const int top = box.top / denominator;
    const int right = ceil_div(box.left + box.width, denominator);
    const int bottom = ceil_div(box.top + box.height, denominator);
    return {left, top, right - left, bottom - top};
}

ImageSize read_jpeg_size(std::span<const std::uint8_t> bytes) {
    JpegReader reader;
    return read_jpeg_header(bytes, reader);
}

DecodedImage decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeRequest& request) {
    JpegReader reader;
    DecodedImage out;
    out.full_size = read_jpeg_header(bytes, reader);
    start_decoding(reader, request, out);
    const bool is_read = read_jpeg_rows(reader, out.image);
    (is_read ? out.warning : out.damage) = reader.errors.calls.message();
    // Decoding a region does not notice that the file is truncated after it.
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (is_read && text.rfind("\xff\xd9") == std::string_view::npos) {
        out.damage = "the file ends early";
    }
    return out;
}

std::vector<std::uint8_t> encode_jpeg(const ImageView& image, int quality) {
    JpegErrors errors;
    jpeg_compress_struct info{};
    info.err = &errors.manager;
    unsigned char* buffer = nullptr;
    unsigned long bytes = 0;
    const bool encoded = errors.calls.succeed([&info, &buffer, &bytes, &image, quality] {
        jpeg_create_compress(&info);
        jpeg_mem_dest(&info, &buffer, &bytes);
        info.image_width = static_cast<JDIMENSION>(image.width);
        info.image_height = static_cast<JDIMENSION>(image.height);
        info.input_components = kImageChannels;
        info.in_color_space = JCS_RGB;
        jpeg_set_defaults(&info);
        jpeg_set_quality(&info, quality, TRUE);
        jpeg_start_compress(&info, TRUE);
        for (int y = 0; y < image.height; ++y) {
            auto* row = const_cast<JSAMPROW>(image.row(y));
            jpeg_write_scanlines(&info, &row, 1);
        }
        jpeg_finish_compress(&info);
    });
    jpeg_destroy_compress(&info);
    std::vector<std::uint8_t> out;
    if (encoded) out.assign(buffer, buffer + bytes);
    std::free(buffer);
    ensure(encoded, "JPEG encoder: {}", errors.calls.message());
    return out;
}

}  // namespace hpcai::data
