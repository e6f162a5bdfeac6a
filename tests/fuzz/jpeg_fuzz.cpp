// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/image_codec.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // Any image is given in parts as the program asks for them; a large one takes too long.
    fuzz::refusing([&] {
        const std::span bytes(data, size);
        const data::ImageSize picture = data::read_image_size(bytes);
        if (std::int64_t{picture.width} * picture.height > 1'000'000) return;
        const data::DecodedImage whole = data::decode_image(bytes);
        fuzz::expect(whole.full_size.width == picture.width &&
                     whole.full_size.height == picture.height);
        const int left = picture.width / 3, top = picture.height / 4;
        data::decode_image(
            bytes, {2, data::PixelBox{left, top, picture.width - left, picture.height - top}});
        data::decode_image(bytes, {8, {}});
    });
    return 0;
}
