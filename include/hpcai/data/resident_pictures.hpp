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
#include <vector>

#include <hpcai/data/batch_source.hpp>
#include <hpcai/data/sample_set.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::data {

/// Training pictures in the memory of a device, decoded once, of which the device itself makes the
/// rows of batches. They come in as they are met, until one does not fit. No pixel depends on which
/// are held: the others are prepared on the host, to the same bits.
class ResidentPictures {
public:
    struct Contents {
        std::int64_t pictures = 0;
        std::size_t bytes = 0;
    };

    /// Shares of the device's memory.
    struct Room {
        std::size_t bytes = 0;        // for pictures
        std::int64_t rows = 0;        // of a batch, whose views need room, too
        std::size_t spare_bytes = 0;  // that are left free for what others allocate later
    };

    /// For sample sets that decode pictures whole (data.resident_mib > 0). The device resizes crops
    /// and outlives this. Throws Error(usage) naming data.resident_mib when it lacks the memory.
    ResidentPictures(device::Device& device, const Room& room);

    /// Prepares a row: either `view` gets a place, or `row` is written. Returns as
    /// SampleSet::training_sample does. May be called from many threads.
    std::string prepare(const SampleSet& samples, std::uint32_t sample, const CounterStream& random,
                        const SampleView& row, device::PictureView& view);

    /// Enqueues what makes `images` in device memory (N, H, W, 3) the batch, whose rows prepare()
    /// has made, by at most two calls of Device::enqueue_upload. The batch may then change. From
    /// the thread that uses the device.
    void enqueue(const Batch& batch, std::uint8_t* images);

    Contents contents() const;

private:
    struct Place {
        std::int64_t offset_bytes = 0;
        ImageSize size;
    };
    using Known = std::optional<std::optional<Place>>;  // whether it was decoded, and has a place

    Known find(std::uint32_t sample) const;
    std::optional<Place> admit(const SampleSet& samples, std::uint32_t sample);
    void enqueue_pictures(std::span<const device::PictureView> views);
    void enqueue_pixels(const Batch& batch, std::uint8_t* images);

    device::Device& device_;
    std::unique_ptr<device::Memory> memory_, views_;
    mutable std::mutex mutex_;  // of all below
    Contents contents_;
    std::size_t used_bytes_ = 0;
    bool is_full_ = false;
    std::unordered_map<std::uint32_t, std::optional<Place>> places_;  // of samples decoded so far
    std::unordered_map<std::int64_t, Image> arriving_;  // not yet in memory_, by offset
};

}  // namespace hpcai::data
