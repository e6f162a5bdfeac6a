// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/resident_pictures.hpp>

namespace hpcai::data {
namespace {

constexpr std::size_t kAlignment = 256;  // bytes, of the offset of an image

}  // namespace

ResidentPictures::ResidentPictures(device::Device& device, const MemoryBudget& budget)
    : DevicePictures(device, budget.rows) {
    try {
        memory_ = device.allocate(budget.bytes);
        device.allocate(budget.spare_bytes);  // freed at once; fails if less memory is free
    } catch (const Error& error) {
        throw Error(ExitCode::usage,
                    fmt::format("data.resident_mib: {} MiB do not fit on {} next to the network "
                                "and {} MiB for libraries: {}",
                                budget.bytes >> 20, device.description(), budget.spare_bytes >> 20,
                                error.what()));
    }
}

/// Decodes the sample and assigns it memory, if it is undamaged and fits.
std::optional<ResidentPictures::Location> ResidentPictures::admit(const SampleSet& samples,
                                                                  std::uint32_t sample) {
    std::optional<DecodedImage> decoded;
    try {
        decoded = samples.decode_full_size(sample);
    } catch (const DecodeError&) {  // training_sample() will report the error
    }
    const bool is_usable =
        decoded && decoded->damage.empty() && can_resize(decoded->full_size, samples);
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = locations_.try_emplace(sample);
    if (!is_new || !is_usable) return found->second;  // another thread may have been faster
    const std::size_t bytes = decoded->image.pixels.size();
    is_full_ = is_full_ || bytes > memory_->bytes() - used_bytes_;
    if (is_full_) return std::nullopt;
    const auto offset = static_cast<std::int64_t>(used_bytes_);
    found->second = Location{offset, decoded->full_size};
    pending_uploads_.emplace(offset, std::move(decoded->image));
    used_bytes_ = std::min(memory_->bytes(), align_up(used_bytes_ + bytes, kAlignment));
    ++contents_.pictures;
    contents_.bytes += bytes;
    return found->second;
}

std::string ResidentPictures::prepare(const SampleSet& samples, std::uint32_t sample,
                                      const CounterStream& random, const SampleView& row,
                                      device::PictureView& view) {
    std::optional<Location> location;
    bool is_new = false;
    {
        const std::lock_guard lock(mutex_);
        const auto found = locations_.find(sample);
        is_new = found == locations_.end() && !is_full_;
        if (found != locations_.end()) location = found->second;
    }
    if (is_new) location = admit(samples, sample);
    view = {};
    if (!location) return samples.training_sample(sample, random, row);
    view = draw_view(location->offset_bytes, location->size, samples, random);
    return "";
}

void ResidentPictures::enqueue(const Batch& batch, std::uint8_t* images) {
    for (const device::PictureView& view : batch.views) {
        Image image;  // that is not yet in device memory
        {
            const std::lock_guard lock(mutex_);
            const auto pending = pending_uploads_.extract(view.offset_bytes);
            if (pending.empty()) continue;
            image = std::move(pending.mapped());
        }
        device_.enqueue_fresh_upload(static_cast<std::byte*>(memory_->data()) + view.offset_bytes,
                                     std::as_bytes(std::span(image.pixels)));
    }
    enqueue_rows(batch, memory_->data(), images);
}

std::string ResidentPictures::summary() const {
    const Contents held = contents();
    return fmt::format("the GPU's memory holds {} training images of rank 0, {:.1f} MiB",
                       held.pictures, static_cast<double>(held.bytes) / (1 << 20));
}

ResidentPictures::Contents ResidentPictures::contents() const {
    const std::lock_guard lock(mutex_);
    return contents_;
}

}  // namespace hpcai::data
