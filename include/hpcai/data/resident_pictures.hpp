// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include <hpcai/data/batch_source.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::data {

/// Decoded training pictures in device memory, from which the device makes the rows of batches.
/// Pictures are added when first used, until one does not fit. Damaged and very large pictures are
/// never added. The host prepares pictures that are not held with the same bits, so the pixels do
/// not depend on which pictures are held.
class ResidentPictures {
public:
    struct Contents {
        std::int64_t pictures = 0;
        std::size_t bytes = 0;
    };

    /// Amounts of device memory.
    struct Room {
        std::size_t bytes = 0;        // for pictures
        std::int64_t rows = 0;        // of a batch, whose views need memory too
        std::size_t spare_bytes = 0;  // left free for later allocations
    };

    /// For sets of make_folder_samples() with data.resident_mib > 0. The device must outlive this
    /// object. Throws Error(usage) naming data.resident_mib when the device lacks memory.
    ResidentPictures(device::Device& device, const Room& room);

    /// Prepares a row: sets `view` if the picture is held, else writes `row`. Returns like
    /// SampleSet::training_sample. May be called from many threads.
    std::string prepare(const SampleSet& samples, std::uint32_t sample, const CounterStream& random,
                        const SampleView& row, device::PictureView& view);

    /// Enqueues the work that writes the batch, whose rows prepare() has prepared, to `images` in
    /// device memory (N, H, W, 3), with at most two calls of Device::enqueue_upload, and one of
    /// enqueue_fresh_upload per new picture. The batch may change after the call. Must be called by
    /// the thread that uses the device.
    void enqueue(const Batch& batch, std::uint8_t* images);

    Contents contents() const;

private:
    struct Place {
        std::int64_t offset_bytes = 0;
        ImageSize size;
    };
    using Known = std::optional<std::optional<Place>>;  // outer: known without decoding; inner:
                                                        // where it is, if held

    Known find(std::uint32_t sample) const;
    std::optional<Place> admit(const SampleSet& samples, std::uint32_t sample);
    void enqueue_pictures(std::span<const device::PictureView> views);
    void enqueue_pixels(const Batch& batch, std::uint8_t* images);

    device::Device& device_;
    std::unique_ptr<device::Memory> memory_, views_;
    mutable std::mutex mutex_;  // guards all below
    Contents contents_;
    std::size_t used_bytes_ = 0;
    bool is_full_ = false;
    std::unordered_map<std::uint32_t, std::optional<Place>> places_;  // of samples decoded so far
    std::unordered_map<std::int64_t, Image> arriving_;  // not yet in memory_, by offset
};

}  // namespace hpcai::data
