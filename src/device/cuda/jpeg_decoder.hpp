// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "context.hpp"
#include "nvjpeg.hpp"

namespace hpcai::device::cuda {

/// nvJPEG on the current GPU: its hardware decoder, or else its kernels.
struct JpegDecoder {
    nvjpeg::Functions functions{};
    std::shared_ptr<nvjpeg::Handle> handle;  // null if the library cannot be used
    std::string description;                 // "nvJPEG 13.3.2 (hardware)" or "no nvJPEG: ..."
};

/// Opens the library. If that fails, the description has the reason.
JpegDecoder open_jpeg_decoder();

/// Returns null without a handle. Pictures are released on `stream`; `gpu` is the index of its
/// device.
std::unique_ptr<JpegBatch> make_jpeg_batch(const JpegDecoder& decoder, cudaStream_t stream,
                                           int gpu);

}  // namespace hpcai::device::cuda
