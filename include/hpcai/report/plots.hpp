// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/sweep_record.hpp>

/// Drawings as SVG of one element, with colors for a light and for a dark page. The same numbers
/// give the same text.
namespace hpcai::report {

/// An operation in one pass of a training step.
struct PlottedOperation {
    std::string name;
    std::string kind;  // "convolution", ...; what shares a color
    std::string pass;
    double flops = 0;
    double bytes = 0;
    double seconds = 0;
};

struct PlottedCeiling {
    std::string name;
    double flops_per_second = 0;
};

struct RooflinePlot {
    std::string title;
    Quantity memory_bytes_per_second;
    std::vector<PlottedCeiling> ceilings;
    std::vector<PlottedOperation> operations;
};

/// Speed against FLOPs a byte, both logarithmic: a dot for each operation that has FLOPs, bytes and
/// a time, larger the longer it takes, and the ceilings. Throws Error(data) where there is none.
std::string roofline_svg(const RooflinePlot& plot);

/// FLOPS and scale efficiency against ranks, predicted. Throws Error(data) where no speed is known.
std::string sweep_svg(const SweepRecord& sweep);

}  // namespace hpcai::report
