// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/annotated_pictures.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const fuzz::Scratch scratch;
    static const bool is_ready = [] {
        for (const char* folder : {"Annotations", "JPEGImages", "ImageSets/Main"}) {
            std::filesystem::create_directories(scratch.folder() / folder);
        }
        scratch.write("JPEGImages/a.jpg", "");
        scratch.write("ImageSets/Main/train.txt", "a\n");
        return true;
    }();
    fuzz::expect(is_ready);
    scratch.write("Annotations/a.xml", fuzz::text_of(data, size));
    fuzz::refusing([&] { data::read_voc(scratch.folder(), "train", {{}, false}); });
    return 0;
}
