// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/picture_view.hpp>

namespace hpcai::device {

using ops::kLargestReduction;
using ops::PictureView;
using ops::ViewBatch;

}  // namespace hpcai::device
