// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/plan_record.hpp>
#include <hpcai/records/record_fields.hpp>

/// Plots as one SVG element with colors for light and dark pages. Equal inputs give equal texts.
namespace hpcai::report {

/// An operation in one pass of a training step.
struct PlottedOperation {
    std::string name;
    std::string kind;  // "convolution", ...; determines the color
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

/// Speed over FLOPs per byte, both logarithmic, with the ceilings and a dot for each operation that
/// has FLOPs, bytes and a time. Operations that take longer have larger dots. Throws Error(data) if
/// there is no such operation.
std::string roofline_svg(const RooflinePlot& plot);

/// Predicted FLOPS and scale efficiency over ranks. Throws Error(data) if no speed is known.
std::string sweep_svg(const SweepRecord& sweep);

}  // namespace hpcai::report
