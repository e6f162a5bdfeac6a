// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <hpcai/device/device.hpp>
#include <hpcai/tensor/tensor_view.hpp>

namespace hpcai::data {

class ResidentPictures;

/// One rank's part of one step's batch. Pixels are as decoded, and normalization is the device's
/// work; fields of numbers come normalized.
struct Batch {
    tensor::TensorView images;  // (N, H, W, C) u8, or f32, f16, bf16
    tensor::TensorView labels;  // (N) s32: class, or -1 for padding that no metric counts
    /// (N, G, 5) f32, rows x1, y1, x2, y2, category of SampleFormat; G is 0 without boxes.
    tensor::TensorView boxes{nullptr, {0, 0, 5}, tensor::DType::f32};
    /// (N) s32, 32 random bits for each row of a training batch with boxes, else 0: a function of
    /// (seed, model, epoch, sample, how often it came before). Empty without boxes.
    tensor::TensorView keys{nullptr, {0}, tensor::DType::s32};
    std::int64_t samples = 0;  // real ones; N - samples rows of padding follow
    /// Not null: the rows that have a view in `views` (N) are to be made of these, and have no
    /// pixels in `images`.
    ResidentPictures* pictures = nullptr;
    std::span<const device::PictureView> views;
};

/// Hands out batches in order, prepared ahead by threads of its own.
class BatchSource {
public:
    virtual ~BatchSource() = default;
    /// Batches of this rank in the epoch or evaluation begun last.
    virtual std::int64_t batches() const = 0;
    /// The next batch; its memory stays valid until the call after. Throws Error(data) when a
    /// sample cannot be read and the policy is `fail`; Error(internal) past the last batch.
    virtual const Batch& next() = 0;
    /// Seconds that calls of next() have waited for data since construction.
    virtual double wait_seconds() const = 0;
};

}  // namespace hpcai::data
