// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <unordered_map>

#include <hpcai/data/device_pictures.hpp>

namespace hpcai::data {

/// A cache of decoded training images in device memory. The device crops and resizes them into
/// the rows of batches. Images are added when first used, until one does not fit; damaged and
/// very large images are never added. The host prepares other images with bitwise equal
/// results, so pixels do not depend on the contents of the cache.
class ResidentPictures final : public DevicePictures {
public:
    struct Contents {
        std::int64_t pictures = 0;
        std::size_t bytes = 0;
    };

    /// The device memory to allocate.
    struct MemoryBudget {
        std::size_t bytes = 0;        // for images
        std::int64_t rows = 0;        // of a batch; each has a PictureView
        std::size_t spare_bytes = 0;  // that must stay free for later allocations
    };

    /// For data.resident_mib > 0. The device must outlive this object. Throws Error(usage) naming
    /// data.resident_mib when the device lacks memory.
    ResidentPictures(device::Device& device, const MemoryBudget& budget);

    std::string prepare(const SampleSet& samples, std::uint32_t sample, const CounterStream& random,
                        const SampleView& row, device::PictureView& view) override;
    /// Calls Device::enqueue_fresh_upload once per new image.
    void enqueue(const Batch& batch, std::uint8_t* images) override;
    std::string summary() const override;

    Contents contents() const;

private:
    struct Location {
        std::int64_t offset_bytes = 0;
        ImageSize size;
    };

    std::optional<Location> admit(const SampleSet& samples, std::uint32_t sample);

    std::unique_ptr<device::Memory> memory_;
    mutable std::mutex mutex_;  // guards all members below
    Contents contents_;
    std::size_t used_bytes_ = 0;
    bool is_full_ = false;
    std::unordered_map<std::uint32_t, std::optional<Location>> locations_;  // none: not cached
    std::unordered_map<std::int64_t, Image> pending_uploads_;               // by offset in memory_
};

}  // namespace hpcai::data
