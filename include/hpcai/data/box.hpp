// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <hpcai/records/record_fields.hpp>

namespace hpcai::data {

/// A labelled object of a picture: the pixels [x1, x2) x [y1, y2), x counted along rows. Pixel i
/// covers [i, i + 1).
struct Box {
    float x1 = 0;
    float y1 = 0;
    float x2 = 0;
    float y2 = 0;
    std::int32_t category = 1;  // from 1 on; 0 is the background

    HPCAI_RECORD(Box, x1, y1, x2, y2, category);
};

}  // namespace hpcai::data
