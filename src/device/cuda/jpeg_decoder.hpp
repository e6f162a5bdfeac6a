// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "context.hpp"
#include "nvjpeg.hpp"

namespace hpcai::device::cuda {

/// nvJPEG on the current GPU: its hardware decoder, or else its kernels.
class JpegDecoder {
public:
    /// Opens the library. If that fails, description() has the reason.
    JpegDecoder();

    /// Returns "nvJPEG 13.3.2 (hardware)" or "no nvJPEG: ...".
    const std::string& description() const { return description_; }
    /// Returns null if the library cannot be used. Pictures are released on `stream`; `gpu` is the
    /// index of its device. The decoder must outlive the result. Thread-safe.
    std::unique_ptr<JpegBatch> make_batch(cudaStream_t stream, int gpu) const;

private:
    void open();

    nvjpeg::Functions functions_{};
    std::shared_ptr<nvjpeg::Handle> handle_;
    std::string description_;
};

}  // namespace hpcai::device::cuda
