// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jpeglib.h>  // needs <cstdio> before it
#include <png.h>

#include <hpcai/base/rounding.hpp>
#include <hpcai/data/image_codec.hpp>

namespace hpcai::data {
namespace {

/// Calls of a C library that reports errors by a callback, which must not return.
class LibraryCalls {
public:
    /// Runs `step` and returns whether all its calls succeeded. `step` must not own anything,
    /// because a failure exits it by longjmp.
    template <typename Step>
    bool succeed(const Step& step) {
        static_assert(std::is_trivially_destructible_v<Step>);
        if (setjmp(jump_) != 0) return false;
        step();
        return true;
    }
    [[noreturn]] void fail(const char* reason) {
        message_ = reason;
        std::longjmp(jump_, 1);
    }
    void warn(const char* text) {
        if (message_.empty()) message_ = text;
    }
    /// Returns the error or the first warning, or "".
    const std::string& message() const { return message_; }

private:
    std::jmp_buf jump_{};
    std::string message_;
};

/// Throws DecodeError for a size above kMaxImageSide or kMaxImagePixels.
ImageSize legal_size(std::int64_t width, std::int64_t height) {
    if (width > kMaxImageSide || height > kMaxImageSide || width * height > kMaxImagePixels) {
        throw DecodeError(fmt::format("{} x {} pixels, more than {} a side or {} in total", width,
                                      height, kMaxImageSide, kMaxImagePixels));
    }
    return {static_cast<int>(width), static_cast<int>(height)};
}

/// Returns whether the file is a PNG; otherwise it is a JPEG. Throws DecodeError for other files.
bool is_png(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) throw DecodeError("the file is empty");
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    if (text.starts_with("\x89PNG")) return true;
    if (text.starts_with("\xff\xd8")) return false;
    constexpr std::pair<const char*, const char*> kOtherFormats[] = {
        {"GIF8", "GIF"}, {"RIFF", "WebP"}, {"BM", "BMP"}, {"II*", "TIFF"}, {"MM", "TIFF"}};
    for (const auto& [prefix, name] : kOtherFormats) {
        if (text.starts_with(prefix)) {
            throw DecodeError(fmt::format("a {} file, not a JPEG or PNG", name));
        }
    }
    throw DecodeError("not a JPEG or PNG");
}

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
    if (level >= 0 || info->err->num_warnings++ > 0) return;  // warnings have level -1
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

/// Converts one row of CMYK to RGB like Pillow, which assumes that all files store inverted values
/// (255: no ink), as Adobe's programs do.
void convert_cmyk(const std::uint8_t* cmyk, int width, std::uint8_t* target) {
    for (int x = 0; x < width; ++x) {
        const unsigned light = cmyk[4 * x + 3];
        for (int c = 0; c < kImageChannels; ++c) {
            // The expression below divides this by 255 with rounding.
            const unsigned absorbed = (255U - cmyk[4 * x + c]) * light + 128;
            target[3 * x + c] =
                static_cast<std::uint8_t>(light - (((absorbed >> 8) + absorbed) >> 8));
        }
    }
}

/// Returns the region to decode, in downscaled pixels. Adds a column of the image at each side, if
/// there is one, because libjpeg upsamples chroma only within the decoded region.
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

/// Returns whether a JPEG has an end-of-image marker.
bool has_end(std::span<const std::uint8_t> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.rfind("\xff\xd9") != std::string_view::npos;
}

DecodedImage decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeRequest& request) {
    JpegReader reader;
    DecodedImage out;
    out.full_size = read_jpeg_header(bytes, reader);
    start_decoding(reader, request, out);
    const bool is_read = read_jpeg_rows(reader, out.image);
    (is_read ? out.warning : out.damage) = reader.errors.calls.message();
    // Decoding a region does not notice that the file is truncated after the region.
    if (is_read && !has_end(bytes)) out.damage = "the file ends early";
    return out;
}

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

/// Reads the chunks before the pixels. Skips chunks that do not affect the pixels.
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

/// Reads the whole file as RGB. Like Pillow, limits 16-bit grey values to 255, but uses the high
/// byte of other 16-bit values.
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
    if (png_get_rowbytes(png, info) != row_bytes) png_error(png, "unexpected row size");
    for (int pass = 0; pass < passes; ++pass) {
        for (int y = 0; y < image.height; ++y) {
            png_read_row(png, image.pixels.data() + y * row_bytes, nullptr);
        }
    }
    png_read_end(png, nullptr);
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

}  // namespace

PixelBox downscaled_box(const PixelBox& box, int denominator) {
    const int left = box.left / denominator;
    const int top = box.top / denominator;
    const int right = ceil_div(box.left + box.width, denominator);
    const int bottom = ceil_div(box.top + box.height, denominator);
    return {left, top, right - left, bottom - top};
}

ImageSize read_image_size(std::span<const std::uint8_t> bytes) {
    if (is_png(bytes)) {
        PngReader reader{bytes};
        return read_png_header(reader);
    }
    JpegReader reader;
    return read_jpeg_header(bytes, reader);
}

std::optional<ImageSize> baseline_jpeg_size(std::span<const std::byte> file) {
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(file.data()), file.size());
    constexpr std::size_t kTail = 1024;  // bytes; an end marker before them may be a thumbnail's
    if (is_png(bytes) || !has_end(bytes.last(std::min(bytes.size(), kTail)))) return std::nullopt;
    JpegReader reader;
    const ImageSize size = read_jpeg_header(bytes, reader);
    const jpeg_decompress_struct& info = reader.info;
    const bool is_baseline = info.progressive_mode == FALSE && info.arith_code == FALSE &&
                             info.data_precision == 8 && info.comps_in_scan == 3;
    if (!is_baseline || info.jpeg_color_space != JCS_YCbCr) return std::nullopt;
    const std::span components(info.comp_info, 3);
    const bool is_supported =
        std::max(components[0].h_samp_factor, components[0].v_samp_factor) <= 2 &&
        std::ranges::all_of(components.subspan(1), [](const jpeg_component_info& chroma) {
            return chroma.h_samp_factor * chroma.v_samp_factor == 1;
        });
    return is_supported ? std::optional(size) : std::nullopt;
}

DecodedImage decode_image(std::span<const std::uint8_t> bytes, const DecodeRequest& request) {
    return is_png(bytes) ? decode_png(bytes) : decode_jpeg(bytes, request);
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
