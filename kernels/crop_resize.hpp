// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/picture_view.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

using ops::PictureView;
using ops::ViewBatch;

/// Resizes the crop of each row with a view to side x side, then mirrors it. The resize is
/// antialiased bilinear with the bits of Image.resize(BILINEAR) of Pillow up to 12 for the crop
/// alone (src/libImaging/Resample.c: triangle filter widened by the reduction, 22-bit fixed-point
/// weights from fp64, horizontal then vertical pass, each rounded to 8 bits). Throws
/// Error(internal) for an unsupported number of rows or side.
void crop_resize(const ViewBatch& batch, Stream stream);

}  // namespace hpcai::kernels
