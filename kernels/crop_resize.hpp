// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/picture_view.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

using ops::PictureView;
using ops::ViewBatch;

/// Resizes the crop of each view with offset_bytes >= 0 to side x side, then mirrors it for `flip`
/// and `vertical_flip`. The result is bitwise equal to Image.resize(BILINEAR) of the cropped image
/// in Pillow up to version 12. Pillow's src/libImaging/Resample.c has the algorithm: a triangle
/// filter, wider for a stronger reduction, has fp64 weights that are rounded to 22 fixed-point
/// bits; a horizontal and then a vertical pass each round their results to 8 bits. Throws
/// Error(internal) unless there are 1 to 65535 rows and side is 1 to 32768.
void crop_resize(const ViewBatch& batch, Stream stream);

}  // namespace hpcai::kernels
