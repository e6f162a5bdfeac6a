// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/image.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

inline constexpr int kMaxPhotographClasses = 1024;

/// A set of synthetic photographs. Each is a function of these values, split, class and number.
struct PhotographSet {
    int classes = 10;  // at most kMaxPhotographClasses
    int size = 96;     // longer side, pixels
    std::uint64_t seed = 1;
};

/// Returns number, outline and surface of a class, for example "0003_triangle_rings".
std::string photograph_class_name(int label);

/// Makes one image of class `label`: an object with the outline and surface of the class in front
/// of a background and plain objects of random outlines. Colours, position, scale, rotation, light,
/// noise, aspect ratio and background are random and independent of the class, so the mean colour
/// does not reveal the class. From class 64 on, pairs of outline and surface repeat with another
/// scale of the surface.
Image make_photograph(const PhotographSet& set, Split split, int label, std::uint32_t number);

}  // namespace hpcai::data
