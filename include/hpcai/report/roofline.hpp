// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/records/roofline_record.hpp>

namespace hpcai::report {

/// The record as text: the machine, a line for each operation and pass, bandwidths, all-reduces and
/// training steps. Control characters in texts become spaces.
std::string roofline_text(const RooflineRecord& record);

}  // namespace hpcai::report
