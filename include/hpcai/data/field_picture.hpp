// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/record_set.hpp>

namespace hpcai::data {

/// One channel of one sample with its labels.
struct ShownField {
    int height = 0;
    int width = 0;
    std::vector<float> values;  // (height, width), row 0 in the south
    std::vector<Box> boxes;
};

/// Reads one channel, 0 to 15, in physical units. Throws Error(data) when the sample is damaged.
ShownField field_of(const ClimateFile& file, std::int64_t sample, int channel);
/// Like the function above, but returns normalized values.
ShownField field_of(const RecordSet& records, std::int64_t sample, int channel);

/// Draws the field in false colours, north at the top, dark for low and bright for high values.
/// Colours span the 0.5 % and 99.5 % quantiles; values that are not finite are magenta. Boxes are
/// framed and named TD, TC, ETC, AR, in one colour per category. Small fields are enlarged.
Image draw_field(const ShownField& field);

/// Encodes a PNG file (ISO/IEC 15948): 8-bit RGB, not interlaced.
std::vector<std::uint8_t> encode_png(const ImageView& image);

}  // namespace hpcai::data
