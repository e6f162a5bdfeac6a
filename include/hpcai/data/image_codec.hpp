// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include <hpcai/base/error.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/records/record_fields.hpp>

namespace hpcai::data {

inline constexpr int kMaxImageSide = 16384;  // pixels
inline constexpr std::int64_t kMaxImagePixels = 100'000'000;

/// Error for a file that is not a usable image; what() is the reason without the file name.
class DecodeError : public Error {
public:
    explicit DecodeError(const std::string& reason) : Error(ExitCode::data, reason) {}
};

struct ImageSize {
    int width = 0;
    int height = 0;

    HPCAI_RECORD(ImageSize, width, height);
};

struct DecodeRequest {
    int denominator = 1;  // 1, 2, 4 or 8; downscales each side, rounded up; ignored for a PNG
    std::optional<PixelBox> region;  // part to decode, in full-size pixels; if absent, everything
};

/// Returns the pixels of the downscaled image that overlap a box in full-size pixels.
PixelBox downscaled_box(const PixelBox& box, int denominator);

/// Decoded pixels and their position in the downscaled image.
struct DecodedImage {
    Image image;
    ImageSize full_size;  // of the entire image, before downscaling
    int left = 0;         // column of the downscaled image where `image` begins
    int top = 0;          // row of the downscaled image where `image` begins
    int denominator = 1;  // by which `image` is downscaled
    std::string damage;   // why the file could not be decoded completely; empty if it could
    std::string warning;  // the decoder's first warning, or empty
};

/// Reads the size from the header of a PNG, or of a JPEG with 1, 3 or 4 components. Throws
/// DecodeError for other files, a damaged header, and sizes above kMaxImageSide or kMaxImagePixels.
ImageSize read_image_size(std::span<const std::uint8_t> bytes);

/// Returns the size of a JPEG that a GPU can decode: complete and baseline, with one scan of
/// YCbCr whose chroma is sampled at the full or half rate; otherwise nothing. Throws DecodeError
/// like read_image_size().
std::optional<ImageSize> baseline_jpeg_size(std::span<const std::byte> file);

/// Decodes with libjpeg's accurate inverse DCT and smooth chroma upsampling, or with libpng. With
/// the default request, the pixels equal Pillow's convert("RGB"): CMYK values are taken as inverted
/// (255: no ink), as in Adobe's files; EXIF orientation, gamma and alpha are ignored; 16-bit grey
/// is clipped to 255. Missing parts of a damaged file are grey or garbled, and `damage` has the
/// reason, also for a PNG with a wrong checksum or no end. The pixels of a region of a JPEG equal
/// those of a full decode. `image` may have a few more columns left and right of the region; their
/// pixels may differ. A PNG is always decoded whole. Throws DecodeError like read_image_size(), and
/// when decoding cannot begin. Thread-safe.
DecodedImage decode_image(std::span<const std::uint8_t> bytes, const DecodeRequest& request = {});

/// Encodes a baseline JPEG with 4:2:0 chroma; quality 1 to 100.
std::vector<std::uint8_t> encode_jpeg(const ImageView& image, int quality);

}  // namespace hpcai::data
