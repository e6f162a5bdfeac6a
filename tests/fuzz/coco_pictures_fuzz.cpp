// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/annotated_pictures.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Scratch scratch;
    static const bool has_picture = !scratch.write("a.jpg", "").empty();
    fuzz::expect(has_picture);
    const auto file = scratch.write("coco.json", fuzz::text_of(data, size));
    fuzz::refusing([&] { data::read_coco(file, scratch.folder(), {{}, false}); });
    return 0;
}
