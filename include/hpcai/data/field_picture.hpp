// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/data/box.hpp>
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

/// `channel` from 0 to 15. Throw Error(data) where the sample is damaged.
ShownField field_of(const ClimateFile& file, std::int64_t sample, int channel);
/// Does likewise with normalized values.
ShownField field_of(const RecordSet& records, std::int64_t sample, int channel);

/// The field in false colours, north at the top, dark for low and bright for high values (by the
/// 0.5 % and 99.5 % quantiles; what is not finite is magenta), with the boxes framed and named TD,
/// TC, ETC, AR, each category in a colour of its own. Small fields are enlarged.
Image draw_field(const ShownField& field);

}  // namespace hpcai::data
