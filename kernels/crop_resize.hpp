// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/picture_view.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

using ops::PictureView;
using ops::ViewBatch;

/// Each row of images that has a view = its crop, resized to side x side and then mirrored. The
/// resize is antialiased bilinear, bit by bit that of Image.resize(BILINEAR) of Pillow up to 12
/// for the crop alone (src/libImaging/Resample.c: triangle filter widened by the reduction, 22-bit
/// fixed-point weights from fp64, horizontal then vertical pass, each rounded to 8 bits). Throws
/// Error(internal) for a number of rows or a side that does not fit.
void crop_resize(const ViewBatch& batch, Stream stream);

}  // namespace hpcai::kernels
