// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/picture_view.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

using ops::PictureView;
using ops::ViewBatch;

/// Resizes the crop of each view with offset_bytes >= 0 to side x side, then mirrors it for `flip`
/// and `vertical_flip`. The antialiased bilinear resize gives the bits of Image.resize(BILINEAR) of
/// Pillow up to 12 for the cropped image. In Pillow's src/libImaging/Resample.c, the reduction
/// widens a triangle filter, weights from fp64 have 22 fixed-point bits, and the horizontal, then
/// the vertical pass round to 8 bits. Throws Error(internal) unless there are 1 to 65535 rows and
/// side is 1 to 32768.
void crop_resize(const ViewBatch& batch, Stream stream);

}  // namespace hpcai::kernels
