// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>
#include <hpcai/tensor/tensor_view.hpp>

namespace hpcai::data {

class DevicePictures;

/// One rank's rows of the batch of one step. u8 pixels are not normalized, because the device does
/// this; floating-point values are already normalized.
struct Batch {
    tensor::TensorView images;  // (N, H, W, C) u8, or f32, f16, bf16
    tensor::TensorView labels;  // (N) s32: class; -1 for padding and for skipped bad samples
    /// (N, G, 5) f32: x1, y1, x2, y2 in pixels, category. G = SampleFormat::max_boxes may be 0.
    tensor::TensorView boxes{nullptr, {0, 0, 5}, tensor::DType::f32};
    /// (N) s32: 32 random bits for each row of a training batch, with which a detector draws
    /// regions; 0 in evaluation, empty without boxes. The bits are a function of seed, model,
    /// epoch, sample, and the number of earlier occurrences of the sample in the epoch.
    tensor::TensorView keys{nullptr, {0}, tensor::DType::s32};
    std::int64_t samples = 0;  // rows with samples; N - samples rows of padding follow
    /// If not null, the device makes the rows whose entry in `views` (N) has offset_bytes >= 0: it
    /// crops an image of `pictures`. `images` has no pixels for these rows.
    DevicePictures* pictures = nullptr;
    std::span<const device::PictureView> views;
};

/// Returns batches in order. Threads of the source prefetch them.
class BatchSource {
public:
    virtual ~BatchSource() = default;
    /// Returns the number of batches of this rank in the current epoch or evaluation.
    virtual std::int64_t batches() const = 0;
    /// Returns the next batch, valid until the next call. Throws Error(data) for a bad sample that
    /// data.on_bad_sample does not accept, and Error(internal) after the last batch.
    virtual const Batch& next() = 0;
    /// Returns the seconds that calls of next() have taken since construction.
    virtual double wait_seconds() const = 0;
};

}  // namespace hpcai::data
