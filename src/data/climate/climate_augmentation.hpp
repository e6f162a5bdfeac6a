// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/data/box.hpp>

/// Changes that turn weather into other possible weather. A plain mirror image is none: cyclones
/// would rotate the wrong way.
namespace hpcai::data {

/// Extents of one sample's fields (height, width, 16).
struct FieldSize {
    int height = 0;
    int width = 0;
};

/// Turns the planet: column x of a whole grid moves to (x + columns) modulo the width, its boxes
/// with it. Boxes that would cross the seam are left out. `columns` from 0 to width - 1.
void roll_longitude(std::span<float> fields, const FieldSize& size, int columns,
                    std::vector<Box>& boxes);

/// Exchanges north and south: rows reversed, the northward winds V850 and VBOT negated, boxes
/// mirrored. With `mean` and `standard_deviation` of the channels (16 each) the fields are
/// normalized ones, (x - mean) / deviation, and stay so; both empty: physical units.
void flip_hemispheres(std::span<float> fields, const FieldSize& size, std::vector<Box>& boxes,
                      std::span<const double> mean, std::span<const double> standard_deviation);

}  // namespace hpcai::data
