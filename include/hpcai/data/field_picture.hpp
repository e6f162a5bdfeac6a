// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/climate_generator.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/record_set.hpp>

namespace hpcai::data {

/// One channel of one sample, the sample's boxes, and the boxes that a model has detected.
struct LabelledField {
    int height = 0;
    int width = 0;
    std::vector<float> values;  // (height, width), row 0 is the southernmost
    std::vector<Box> boxes;
    std::vector<Box> detections = {};
};

/// Reads channel 0 to 15 of a sample in physical units. Throws Error(data) if it is damaged.
LabelledField read_field(const ClimateFile& file, std::int64_t sample, int channel);
/// Reads a channel of a sample with normalized values. Throws Error(data) if it is damaged.
LabelledField read_field(const RecordSet& records, std::int64_t sample, int channel);

/// Makes a channel of a validation sample in physical units.
LabelledField read_field(const ClimateGenerator& generator, std::int64_t sample, int channel);

/// Draws the field in false colours, north at the top, dark for low and bright for high values.
/// Colours span the 0.5 % to 99.5 % quantiles; values that are not finite are magenta. Boxes have a
/// frame, dashed for detections, and a label (TD, TC, ETC, AR) in one colour per category. Small
/// fields are enlarged.
Image draw_field(const LabelledField& field);

/// Encodes a PNG file of 8-bit RGB, not interlaced.
std::vector<std::uint8_t> encode_png(const ImageView& image);

}  // namespace hpcai::data
