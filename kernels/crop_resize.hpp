// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/ops/picture_view.hpp>

#include "stream.hpp"

namespace hpcai::kernels {

using ops::PictureView;
using ops::ViewBatch;

/// For each row of the batch with a view, resizes its crop to side x side, then mirrors it for
/// `flip` and `vertical_flip`. The antialiased bilinear resize gives the bits that
/// Image.resize(BILINEAR) of Pillow up to 12 gives for the cropped image
/// (src/libImaging/Resample.c: triangle filter widened by the reduction, 22-bit fixed-point weights
/// from fp64, horizontal then vertical pass, each rounded to 8 bits). Throws Error(internal) unless
/// there are 1 to 65535 rows and side is 1 to 32768.
void crop_resize(const ViewBatch& batch, Stream stream);

}  // namespace hpcai::kernels
