// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include <hpcai/data/batch_source.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::data {

/// Decoded training images in device memory. The device crops and resizes them into the rows of
/// batches. For the sets of make_folder_samples().
class DevicePictures {
public:
    virtual ~DevicePictures() = default;

    /// Prepares a row. Sets `view` if the device makes the row; otherwise writes the pixels to
    /// `row`. Returns the same as SampleSet::training_sample(). Thread-safe.
    virtual std::string prepare(const SampleSet& samples, std::uint32_t sample,
                                const CounterStream& random, const SampleView& row,
                                device::PictureView& view) = 0;
    /// Completes the batch of these views after prepare() of its rows. Returns the rows that the
    /// host must prepare with training_sample() after all; their views are unset. Thread-safe.
    virtual std::vector<std::int64_t> complete(std::span<device::PictureView> /*views*/) {
        return {};
    }
    /// Enqueues the work that writes a batch to `images` (N, H, W, 3) in device memory. The batch
    /// must be complete and may change after the call. Calls Device::enqueue_upload at most twice.
    /// Must be called by the thread that uses the device.
    virtual void enqueue(const Batch& batch, std::uint8_t* images) = 0;
    /// Returns a line for the log.
    virtual std::string summary() const = 0;
};

/// Returns the view of an image at `offset_bytes` for an augmentation.
device::PictureView picture_view(std::int64_t offset_bytes, ImageSize size,
                                 const TrainingView& drawn);

/// Returns whether a device can reduce crops of an image of this size to `image_size` pixels.
bool can_be_resized(const ImageSize& size, std::int64_t image_size);

/// Makes batches of up to `rows` rows from images in device memory and rows of the host.
class ViewResizer {
public:
    ViewResizer(device::Device& device, std::int64_t rows)
        : device_(device), views_(device.allocate(rows * sizeof(device::PictureView))) {}

    /// As DevicePictures::enqueue(). `pictures` is the base of the views' offsets.
    void enqueue(const Batch& batch, const std::uint8_t* pictures, std::uint8_t* images);

private:
    device::Device& device_;
    std::unique_ptr<device::Memory> views_;
};

/// Decodes the training images of each batch on the device, for data.decoder gpu. The host prepares
/// images that the device's decoder does not take.
class DecodedPictures final : public DevicePictures {
public:
    /// The device must have a decoder of JPEG files and outlive this object.
    DecodedPictures(device::Device& device, std::int64_t rows)
        : device_(device), resizer_(device, rows) {}

    std::string prepare(const SampleSet& samples, std::uint32_t sample, const CounterStream& random,
                        const SampleView& row, device::PictureView& view) override;
    std::vector<std::int64_t> complete(std::span<device::PictureView> views) override;
    void enqueue(const Batch& batch, std::uint8_t* images) override;
    std::string summary() const override;

private:
    struct File {
        std::vector<std::byte> bytes;
        ImageSize size;
    };
    device::JpegBatch& batch_of(const device::PictureView* views);

    device::Device& device_;
    ViewResizer resizer_;
    std::atomic<std::int64_t> decoded_{0}, prepared_{0};          // images by device, by the host
    std::mutex mutex_;                                            // guards the members below
    std::unordered_map<const device::PictureView*, File> files_;  // to decode, by view
    /// By the views of a batch: each memory of the source for a batch has a separate one.
    std::unordered_map<const device::PictureView*, std::unique_ptr<device::JpegBatch>> batches_;
};

}  // namespace hpcai::data
