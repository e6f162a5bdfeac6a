// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include <jpeglib.h>  // needs <cstdio> before it

#include <hpcai/base/rounding.hpp>
#include <hpcai/data/jpeg.hpp>

namespace hpcai::data {
namespace {

constexpr int kMaxScans = 200;  // a few kB of empty scans could keep a thread busy for minutes

/// libjpeg's error manager, which by default exits the process, followed by our own state.
struct ErrorState {
    jpeg_error_mgr manager;  // first member, because libjpeg has only its address
    std::jmp_buf jump;
    std::array<char, JMSG_LENGTH_MAX> message;  // the error or the first warning
};

ErrorState& state_of(j_common_ptr info) {
    return *reinterpret_cast<ErrorState*>(info->err);
}

extern "C" {

[[noreturn]] static void jump_on_error(j_common_ptr info) {
    ErrorState& state = state_of(info);
    state.manager.format_message(info, state.message.data());
    std::longjmp(state.jump, 1);
}

static void keep_first_warning(j_common_ptr info, int level) {
    if (level >= 0) return;  // trace output
    ErrorState& state = state_of(info);
    if (state.manager.num_warnings++ == 0) state.manager.format_message(info, state.message.data());
}

static void print_nothing(j_common_ptr) {}

static void limit_scans(j_common_ptr info) {
    const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
    if (decompress->input_scan_number <= kMaxScans) return;
    ErrorState& state = state_of(info);
    std::snprintf(state.message.data(), state.message.size(), "more than %d scans", kMaxScans);
    std::longjmp(state.jump, 1);
}

}  // extern "C"

void install_error_handlers(ErrorState& state) {
    jpeg_std_error(&state.manager);
    state.manager.error_exit = jump_on_error;
    state.manager.emit_message = keep_first_warning;
    state.manager.output_message = print_nothing;
    state.message.fill('\0');
}

/// Runs `step`, which calls libjpeg, and returns false if a call failed. `step` must not own
/// anything, because a failure exits it by longjmp.
template <typename Step>
bool succeeds(ErrorState& state, const Step& step) {
    static_assert(std::is_trivially_destructible_v<Step>);
    if (setjmp(state.jump) != 0) return false;
    step();
    return true;
}

class Decompressor {
public:
    explicit Decompressor(std::span<const std::uint8_t> bytes) {
        install_error_handlers(state_);
        info_.err = &state_.manager;
        const bool made = succeeds(state_, [this, bytes] {
            jpeg_create_decompress(&info_);
            progress_.progress_monitor = limit_scans;
            info_.progress = &progress_;
            jpeg_mem_src(&info_, bytes.data(), static_cast<unsigned long>(bytes.size()));
            jpeg_read_header(&info_, TRUE);
        });
        if (!made) fail();
    }
    ~Decompressor() { jpeg_destroy_decompress(&info_); }
    Decompressor(const Decompressor&) = delete;
    Decompressor& operator=(const Decompressor&) = delete;

    jpeg_decompress_struct& info() { return info_; }
    template <typename Step>
    bool attempt(const Step& step) {
        return succeeds(state_, step);
    }
    /// Throws DecodeError with libjpeg's message. Destroys info_, because the constructor calls
    /// this and the destructor then does not run.
    [[noreturn]] void fail() {
        const std::string reason = message();
        jpeg_destroy_decompress(&info_);
        throw DecodeError(reason);
    }
    long warnings() const { return state_.manager.num_warnings; }
    std::string message() const { return state_.message.data(); }

private:
    ErrorState state_{};
    jpeg_progress_mgr progress_{};
    jpeg_decompress_struct info_{};
};

void require_jpeg(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) throw DecodeError("the file is empty");
    struct Magic {
        std::string_view prefix, name;
    };
    constexpr std::array kOtherFormats{Magic{"\x89PNG", "PNG"}, Magic{"GIF8", "GIF"},
                                       Magic{"RIFF", "WebP"},   Magic{"BM", "BMP"},
                                       Magic{"II*", "TIFF"},    Magic{"MM", "TIFF"}};
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    for (const Magic& other : kOtherFormats) {
        if (text.starts_with(other.prefix)) {
            throw DecodeError(fmt::format("a {} file, not a JPEG", other.name));
        }
    }
    if (!text.starts_with("\xff\xd8")) throw DecodeError("not a JPEG (no start-of-image marker)");
}

void check_limits(const jpeg_decompress_struct& info) {
    const std::int64_t width = info.image_width;
    const std::int64_t height = info.image_height;
    if (width > kMaxImageSide || height > kMaxImageSide || width * height > kMaxImagePixels) {
        throw DecodeError(fmt::format("{} x {} pixels, more than {} a side or {} in total", width,
                                      height, kMaxImageSide, kMaxImagePixels));
    }
    const int components = info.num_components;
    if (components != 1 && components != 3 && components != 4) {
        throw DecodeError(fmt::format("{} colour components, expected 1, 3 or 4", components));
    }
}

/// Returns whether the file has an end-of-image marker, also before trailing bytes.
bool has_end_marker(std::span<const std::uint8_t> bytes) {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return text.rfind("\xff\xd9") != std::string_view::npos;
}

std::uint8_t multiply_bytes(unsigned a, unsigned b) {
    const unsigned product = a * b + 128;
    return static_cast<std::uint8_t>(((product >> 8) + product) >> 8);
}

/// Converts one row of CMYK to RGB like Pillow. Adobe's files store inverted values.
void convert_cmyk(const std::uint8_t* cmyk, int width, bool is_inverted, std::uint8_t* target) {
    const unsigned mask = is_inverted ? 0xff : 0;
    for (int x = 0; x < width; ++x) {
        const unsigned light = 255 - (cmyk[4 * x + 3] ^ mask);
        for (int c = 0; c < kImageChannels; ++c) {
            const unsigned absorbed = multiply_bytes(cmyk[4 * x + c] ^ mask, light);
            target[3 * x + c] = static_cast<std::uint8_t>(light - absorbed);
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

/// Reads rows until `image` is full or decoding fails.
void read_rows(Decompressor& decompressor, Image& image) {
    jpeg_decompress_struct& info = decompressor.info();
    const bool is_cmyk = info.out_color_space == JCS_CMYK;
    const bool is_inverted = info.saw_Adobe_marker != FALSE;
    std::vector<std::uint8_t> cmyk_row(is_cmyk ? std::size_t{4} * image.width : 0);
    std::uint8_t* const cmyk_pixels = cmyk_row.data();
    Image* const target = &image;
    decompressor.attempt([&info, cmyk_pixels, target, is_inverted] {
        const std::size_t row_bytes = std::size_t{kImageChannels} * target->width;
        std::uint8_t* out = target->pixels.data();
        for (int y = 0; y < target->height; ++y, out += row_bytes) {
            JSAMPROW row = cmyk_pixels != nullptr ? cmyk_pixels : out;
            if (jpeg_read_scanlines(&info, &row, 1) != 1) return;
            if (cmyk_pixels != nullptr) convert_cmyk(cmyk_pixels, target->width, is_inverted, out);
        }
        if (info.output_scanline == info.output_height) jpeg_finish_decompress(&info);
    });
}

void start_decoding(Decompressor& decompressor, int denominator) {
    jpeg_decompress_struct& info = decompressor.info();
    const bool started = decompressor.attempt([&info, denominator] {
        const bool is_cmyk = info.jpeg_color_space == JCS_CMYK || info.jpeg_color_space == JCS_YCCK;
        info.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
        info.scale_num = static_cast<unsigned>(8 / denominator);
        info.scale_denom = 8;
        jpeg_start_decompress(&info);
    });
    if (!started) throw DecodeError(decompressor.message());
}

/// Skips to the region. Allocates `out.image` for its rows, which start at column `out.left`.
void skip_to_region(Decompressor& decompressor, const PixelBox& region, DecodedImage& out) {
    jpeg_decompress_struct& info = decompressor.info();
    JDIMENSION left = static_cast<JDIMENSION>(region.left);
    JDIMENSION width = static_cast<JDIMENSION>(region.width);
    JDIMENSION* const left_pointer = &left;
    JDIMENSION* const width_pointer = &width;
    const auto top = static_cast<JDIMENSION>(region.top);
    const bool whole_rows = width == info.output_width;
    const bool entered =
        decompressor.attempt([&info, left_pointer, width_pointer, top, whole_rows] {
            if (!whole_rows) jpeg_crop_scanline(&info, left_pointer, width_pointer);
            if (top > 0) jpeg_skip_scanlines(&info, top);
        });
    if (!entered) throw DecodeError(decompressor.message());
    out.left = static_cast<int>(left);
    out.top = region.top;
    out.image = Image(static_cast<int>(info.output_width), region.height, 128);
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
    require_jpeg(bytes);
    Decompressor decompressor(bytes);
    check_limits(decompressor.info());
    return {static_cast<int>(decompressor.info().image_width),
            static_cast<int>(decompressor.info().image_height)};
}

DecodedImage decode_jpeg(std::span<const std::uint8_t> bytes, const DecodeRequest& request) {
    require_jpeg(bytes);
    Decompressor decompressor(bytes);
    jpeg_decompress_struct& info = decompressor.info();
    check_limits(info);
    start_decoding(decompressor, request.denominator);

    DecodedImage out;
    out.full_size = {static_cast<int>(info.image_width), static_cast<int>(info.image_height)};
    skip_to_region(decompressor, downscaled_region(request, info), out);
    read_rows(decompressor, out.image);
    out.damage = decompressor.message();
    // Decoding a region does not notice that the file is truncated after it.
    if (out.damage.empty() && !has_end_marker(bytes)) out.damage = "the file ends early";
    return out;
}

std::vector<std::uint8_t> encode_jpeg(const ImageView& image, int quality) {
    ErrorState state{};
    install_error_handlers(state);
    jpeg_compress_struct info{};
    info.err = &state.manager;
    unsigned char* buffer = nullptr;
    unsigned long bytes = 0;
    const bool encoded = succeeds(state, [&info, &buffer, &bytes, &image, quality] {
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
    ensure(encoded, "JPEG encoder: {}", state.message.data());
    return out;
}

}  // namespace hpcai::data
