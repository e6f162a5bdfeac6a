// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <string_view>

#include <zlib.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/png.hpp>

namespace hpcai::data {

namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::array<std::uint8_t, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};
constexpr std::uint8_t kBitDepth = 8;
constexpr std::uint8_t kTrueColor = 2;
constexpr std::uint8_t kUpFilter = 2;  // of a row: each byte less the one above

void append_u32(Bytes& bytes, std::uint64_t value) {
    for (const int shift : {24, 16, 8, 0}) {
        bytes.push_back(static_cast<std::uint8_t>((value >> shift) & 0xFF));
    }
}

void append_chunk(Bytes& file, std::string_view type, const Bytes& content) {
    append_u32(file, content.size());
    const std::size_t start = file.size();
    file.insert(file.end(), type.begin(), type.end());
    file.insert(file.end(), content.begin(), content.end());
    append_u32(file, ::crc32_z(0, &file[start], file.size() - start));
}

Bytes filtered_rows(const ImageView& image) {
    const std::size_t row_bytes = std::size_t{kImageChannels} * image.width;
    Bytes rows;
    rows.reserve((row_bytes + 1) * image.height);
    for (int y = 0; y < image.height; ++y) {
        rows.push_back(kUpFilter);
        for (std::size_t i = 0; i < row_bytes; ++i) {
            const int above = y > 0 ? image.row(y - 1)[i] : 0;
            rows.push_back(static_cast<std::uint8_t>(image.row(y)[i] - above));
        }
    }
    return rows;
}

Bytes deflated(const Bytes& content) {
    uLongf size = ::compressBound(static_cast<uLong>(content.size()));
    Bytes result(size);
    const int status = ::compress2(result.data(), &size, content.data(),
                                   static_cast<uLong>(content.size()), Z_DEFAULT_COMPRESSION);
    ensure(status == Z_OK, "zlib's compress2 returned {}", status);
    result.resize(size);
    return result;
}

}  // namespace

std::vector<std::uint8_t> encode_png(const ImageView& image) {
    Bytes file(kSignature.begin(), kSignature.end());
    Bytes header;
    append_u32(header, static_cast<std::uint64_t>(image.width));
    append_u32(header, static_cast<std::uint64_t>(image.height));
    header.insert(header.end(), {kBitDepth, kTrueColor, 0, 0, 0});
    append_chunk(file, "IHDR", header);
    append_chunk(file, "IDAT", deflated(filtered_rows(image)));
    append_chunk(file, "IEND", {});
    return file;
}

}  // namespace hpcai::data
