// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <zlib.h>

#include <hpcai/data/image_codec.hpp>

#include "outcome.hpp"

using namespace hpcai;

namespace {

/// Corrects the checksum of each chunk, without which no mutation would be read.
void correct_checksums(std::vector<std::uint8_t>& file) {
    std::size_t at = 8;  // after the signature
    while (at + 12 <= file.size()) {
        std::size_t length = 0;
        for (int i = 0; i < 4; ++i) length = length << 8 | file[at + i];
        if (length > file.size() - at - 12) return;
        const auto sum = crc32(0, &file[at + 4], static_cast<unsigned>(length + 4));
        at += 8 + length;
        for (int i = 0; i < 4; ++i) file[at++] = static_cast<std::uint8_t>(sum >> (24 - 8 * i));
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::uint8_t> file(data, data + size);
    correct_checksums(file);
    fuzz::refusing([&] {
        const data::ImageSize picture = data::read_image_size(file);
        if (std::int64_t{picture.width} * picture.height > 1'000'000) return;
        const data::DecodedImage whole = data::decode_image(file);
        fuzz::expect(whole.image.width == picture.width && whole.image.height == picture.height);
    });
    return 0;
}
