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
/// batches. The samples must be those of make_folder_samples().
class DevicePictures {
public:
    virtual ~DevicePictures() = default;

    /// Prepares a row. Sets `view` and returns "" if the device makes the row; otherwise writes the
    /// pixels to `row` and returns the same as SampleSet::training_sample(). Thread-safe.
    virtual std::string prepare(const SampleSet& samples, std::uint32_t sample,
                                const CounterStream& random, const SampleView& row,
                                device::PictureView& view) = 0;
    /// Completes a batch, whose `views` prepare() has set. Returns the rows that the host must
    /// prepare after all, and makes offset_bytes of their views negative. Thread-safe.
    virtual std::vector<std::int64_t> complete(std::span<device::PictureView> /*views*/) {
        return {};
    }
    /// Enqueues the work that writes a complete batch to `images` (N, H, W, 3) in device memory.
    /// The batch may change after the call. Calls Device::enqueue_upload at most twice, because a
    /// third call may wait. Must be called by the thread that uses the device.
    virtual void enqueue(const Batch& batch, std::uint8_t* images) = 0;
    /// Returns a line for the log.
    virtual std::string summary() const = 0;

protected:
    /// The device must outlive this object. Batches have up to `rows` rows.
    DevicePictures(device::Device& device, std::int64_t rows)
        : device_(device), views_(device.allocate(rows * sizeof(device::PictureView))) {}

    /// Returns whether the device can resize every crop of an image of this size.
    static bool can_resize(ImageSize size, const SampleSet& samples);
    /// Returns the view of an image at `offset_bytes`, with the augmentation of the sample.
    static device::PictureView draw_view(std::int64_t offset_bytes, ImageSize size,
                                         const SampleSet& samples, const CounterStream& random);
    /// Like enqueue(). The decoded images are at `pictures` plus the offsets of the views.
    void enqueue_rows(const Batch& batch, const void* pictures, std::uint8_t* images);

    device::Device& device_;

private:
    std::unique_ptr<device::Memory> views_;
};

/// Decodes the training images of each batch on the device, for data.decoder gpu. The host prepares
/// images that the device cannot decode or resize.
class DecodedPictures final : public DevicePictures {
public:
    /// If the device has no decoder of JPEG files, complete() throws Error(internal).
    DecodedPictures(device::Device& device, std::int64_t rows) : DevicePictures(device, rows) {}

    std::string prepare(const SampleSet& samples, std::uint32_t sample, const CounterStream& random,
                        const SampleView& row, device::PictureView& view) override;
    std::vector<std::int64_t> complete(std::span<device::PictureView> views) override;
    void enqueue(const Batch& batch, std::uint8_t* images) override;
    std::string summary() const override;

private:
    device::JpegBatch& batch_of(const device::PictureView* views);

    std::atomic<std::int64_t> device_images_{0}, host_images_{0};  // decoded by device and host
    std::mutex mutex_;                                             // guards the members below
    std::unordered_map<const device::PictureView*, device::JpegFile> files_;  // to decode, by view
    /// By the first view of a batch, because the source prefetches several batches.
    std::unordered_map<const device::PictureView*, std::unique_ptr<device::JpegBatch>> batches_;
};

}  // namespace hpcai::data
