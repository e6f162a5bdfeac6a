// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/device_pictures.hpp>

namespace hpcai::data {

bool DevicePictures::can_resize(ImageSize size, const SampleSet& samples) {
    return std::max(size.width, size.height) <= device::kMaxCropReduction * samples.format().height;
}

device::PictureView DevicePictures::draw_view(std::int64_t offset_bytes, ImageSize size,
                                              const SampleSet& samples,
                                              const CounterStream& random) {
    const TrainingView drawn = samples.training_view(size, random);
    return {offset_bytes,     size.width,        drawn.crop.left, drawn.crop.top,
            drawn.crop.width, drawn.crop.height, drawn.flip,      drawn.vertical_flip};
}

void DevicePictures::enqueue_rows(const Batch& batch, const void* pictures, std::uint8_t* images) {
    // Uploads all rows at once, because many uploads would make the host wait for the previous
    // step. Then resize_crops() overwrites the rows that have a view.
    const bool all_have_views =
        std::ranges::all_of(batch.views, [](const auto& view) { return view.offset_bytes >= 0; });
    if (!all_have_views) device_.enqueue_upload(images, batch.images.raw());
    ensure(batch.views.size_bytes() <= views_->bytes(), "a batch of {} views exceeds {} bytes",
           batch.views.size(), views_->bytes());
    auto* const views = static_cast<device::PictureView*>(views_->data());
    device_.enqueue_upload(views, std::as_bytes(batch.views));
    device_.resize_crops({static_cast<const std::uint8_t*>(pictures), views,
                          static_cast<std::int64_t>(batch.views.size()), images,
                          static_cast<int>(batch.images.shape[1])});
}

std::string DecodedPictures::prepare(const SampleSet& samples, std::uint32_t sample,
                                     const CounterStream& random, const SampleView& row,
                                     device::PictureView& view) {
    device::JpegFile file;
    std::optional<ImageSize> size;
    try {
        file.bytes = samples.contents(sample);
        size = baseline_jpeg_size(file.bytes);
    } catch (const DecodeError&) {  // training_sample() will report the error
    }
    if (!size || !can_resize(*size, samples)) {
        ++host_images_;
        view = {};
        return samples.training_sample(sample, random, row);
    }
    view = draw_view(0, *size, samples, random);
    file.width = size->width;
    file.height = size->height;
    const std::lock_guard lock(mutex_);
    files_.insert_or_assign(&view, std::move(file));
    return "";
}

std::vector<std::int64_t> DecodedPictures::complete(std::span<device::PictureView> views) {
    std::vector<device::JpegFile> files;
    std::vector<std::int64_t> rows, refused;
    {
        const std::lock_guard lock(mutex_);
        for (std::int64_t row = 0; row < std::ssize(views); ++row) {
            if (views[row].offset_bytes < 0) continue;
            files.push_back(std::move(files_[&views[row]]));
            rows.push_back(row);
        }
    }
    if (!files.empty()) batch_of(views.data()).decode(files);
    for (std::size_t i = 0; i < rows.size(); ++i) {
        views[rows[i]].offset_bytes = files[i].offset_bytes;
        if (files[i].offset_bytes < 0) refused.push_back(rows[i]);
    }
    host_images_ += std::ssize(refused);
    device_images_ += std::ssize(rows) - std::ssize(refused);
    return refused;
}

device::JpegBatch& DecodedPictures::batch_of(const device::PictureView* views) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<device::JpegBatch>& batch = batches_[views];
    if (batch == nullptr) batch = device_.make_jpeg_batch();
    ensure(batch != nullptr, "{} has no decoder of JPEG files", device_.description());
    return *batch;
}

void DecodedPictures::enqueue(const Batch& batch, std::uint8_t* images) {
    device::JpegBatch& decoded = batch_of(batch.views.data());
    enqueue_rows(batch, decoded.pictures(), images);
    decoded.release();
}

std::string DecodedPictures::summary() const {
    return fmt::format("the GPU decoded {} training images of rank 0, the CPU {}",
                       device_images_.load(), host_images_.load());
}

}  // namespace hpcai::data
