// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/data/climate_file.hpp>

/// Interpretation of the rows of the dataset `boxes`.
namespace hpcai::data::climate {

/// One row as stored: four edges and a class, or -1 five times.
using BoxRow = std::array<std::int32_t, 5>;

/// All rows of a file, kMaxClimateBoxes per sample.
struct BoxTable {
    std::vector<BoxRow> rows;
    int height = 0;  // of the images
    int width = 0;
    std::string location;  // for messages
};

/// Throws Error(data) for a class that is not 0 to 3.
void require_classes(const BoxTable& table);

/// Returns `stated`; for `detect`, returns the only possible order, or corners if there is no box.
/// In a possible order, ymin <= ymax <= height and xmin <= xmax <= width. Throws Error(data) if
/// `stated` is not possible, or for `detect` if both orders or neither are possible.
BoxOrder determine_box_order(const BoxTable& table, BoxOrder stated);

struct DecodedBoxes {
    std::vector<std::vector<Box>> boxes_by_sample;
    std::int64_t dropped = 0;  // boxes without area inside the image
};

DecodedBoxes decode_boxes(const BoxTable& table, BoxOrder order);

}  // namespace hpcai::data::climate
