// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/report/page_content.hpp>

namespace hpcai::report {

/// `report.html`: the whole result as one page in HTML that needs no other file and no script, with
/// plots in SVG, for light and dark, wide and narrow screens and paper. What comes from outside is
/// escaped. A number that is not there is "n/a", where there is room with its reason, never NaN.
/// Long lists fold; plots of more than eight groups have their median and spread.
std::string html(const PageContent& content);

}  // namespace hpcai::report
