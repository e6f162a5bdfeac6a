// SPDX-License-Identifier: Apache-2.0
#include "decoders.hpp"

#include <string_view>
#include <utility>

namespace hpcai::data {
namespace {

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

}  // namespace

ImageSize legal_size(std::int64_t width, std::int64_t height) {
    if (width > kMaxImageSide || height > kMaxImageSide || width * height > kMaxImagePixels) {
        throw DecodeError(fmt::format("{} x {} pixels, more than {} a side or {} in total", width,
                                      height, kMaxImageSide, kMaxImagePixels));
    }
    return {static_cast<int>(width), static_cast<int>(height)};
}

ImageSize read_image_size(std::span<const std::uint8_t> bytes) {
    return is_png(bytes) ? read_png_size(bytes) : read_jpeg_size(bytes);
}

DecodedImage decode_image(std::span<const std::uint8_t> bytes, const DecodeRequest& request) {
    return is_png(bytes) ? decode_png(bytes) : decode_jpeg(bytes, request);
}

}  // namespace hpcai::data
