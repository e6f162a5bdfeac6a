// SPDX-License-Identifier: Apache-2.0
#include <hdf5.h>

#include <hpcai/data/climate_file.hpp>

#include "outcome.hpp"

using namespace hpcai;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The file is first tried in a process of its own, as in the program. What passes that trial
    // is opened and read here, in HDF5 without a sanitizer. No HDF5 object stays open, whether the
    // file is accepted or refused.
    static const fuzz::Scratch scratch;
    const auto path = scratch.write("fuzz.h5", fuzz::text_of(data, size));
    fuzz::refusing([&] {
        const data::ClimateFile file(path);
        const std::int64_t elements =
            std::int64_t{data::kClimateChannels} * file.height() * file.width();
        if (elements > 1'000'000) return;
        std::vector<float> fields(static_cast<std::size_t>(elements));
        for (std::int64_t i = 0; i < std::min<std::int64_t>(file.samples(), 4); ++i) {
            file.boxes(i);
            file.read(i, 1, fields);
        }
    });
    fuzz::expect(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
    return 0;
}
