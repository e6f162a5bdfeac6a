// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <hpcai/data/image.hpp>
#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

inline constexpr int kMaxPhotographClasses = 1024;

/// A family of made-up photographs. Any one of them is a function of this and its number alone.
struct PhotographSet {
    int classes = 10;  // at most kMaxPhotographClasses
    int size = 96;     // longer side, pixels
    std::uint64_t seed = 1;
};

/// "0003_triangle_rings": the class's number, outline and surface.
std::string photograph_class_name(int label);

/// One picture of class `label`: an object of the class's outline and surface before a background
/// and plain objects of other outlines. Colours, position, scale, rotation, light, noise, aspect
/// ratio and background are drawn per picture and say nothing about the class, so that the mean
/// colour does not give it away. (From class 64 on, surfaces repeat at another fineness.)
Image make_photograph(const PhotographSet& set, Split split, int label, std::uint32_t number);

}  // namespace hpcai::data
