// SPDX-License-Identifier: Apache-2.0
#include <hpcai/data/device_pictures.hpp>

namespace hpcai::data {

device::PictureView picture_view(std::int64_t offset_bytes, ImageSize size,
                                 const TrainingView& drawn) {
    return {offset_bytes,     size.width,        drawn.crop.left, drawn.crop.top,
            drawn.crop.width, drawn.crop.height, drawn.flip,      drawn.vertical_flip};
}

bool can_be_resized(const ImageSize& size, std::int64_t image_size) {
    return std::max(size.width, size.height) <= device::kMaxCropReduction * image_size;
}

void ViewResizer::enqueue(const Batch& batch, const std::uint8_t* pictures, std::uint8_t* images) {
    // Rows with a view are overwritten later. Separate uploads of the rows without a view would
    // make the host wait for the previous step.
    const bool all_have_views =
        std::ranges::all_of(batch.views, [](const auto& view) { return view.offset_bytes >= 0; });
    if (!all_have_views) device_.enqueue_upload(images, batch.images.raw());
    ensure(batch.views.size_bytes() <= views_->bytes(), "a batch of {} views exceeds {} bytes",
           batch.views.size(), views_->bytes());
    auto* const views = static_cast<device::PictureView*>(views_->data());
    device_.enqueue_upload(views, std::as_bytes(batch.views));
    device_.resize_crops({pictures, views, static_cast<std::int64_t>(batch.views.size()), images,
                          static_cast<int>(batch.images.shape[1])});
}

std::string DecodedPictures::prepare(const SampleSet& samples, std::uint32_t sample,
                                     const CounterStream& random, const SampleView& row,
                                     device::PictureView& view) {
    File file;
    std::optional<ImageSize> size;
    try {
        file.bytes = samples.contents(sample);
        size = baseline_jpeg_size(
            {reinterpret_cast<const std::uint8_t*>(file.bytes.data()), file.bytes.size()});
    } catch (const DecodeError&) {  // training_sample() will report the error
    }
    view = {};
    if (!size || !can_be_resized(*size, samples.format().height)) {
        ++prepared_;
        return samples.training_sample(sample, random, row);
    }
    view = picture_view(0, *size, samples.training_view(*size, random));
    file.size = *size;
    const std::lock_guard lock(mutex_);
    files_.insert_or_assign(&view, std::move(file));
    return "";
}

std::vector<std::int64_t> DecodedPictures::complete(std::span<device::PictureView> views) {
    std::vector<File> files;
    std::vector<device::JpegFile> pictures;
    std::vector<device::PictureView*> places;
    {
        const std::lock_guard lock(mutex_);
        for (device::PictureView& view : views) {
            if (view.offset_bytes < 0) continue;
            files.push_back(std::move(files_.extract(&view).mapped()));
            pictures.push_back(
                {files.back().bytes, files.back().size.width, files.back().size.height});
            places.push_back(&view);
        }
    }
    if (pictures.empty()) return {};
    batch_of(views.data()).decode(pictures);
    std::vector<std::int64_t> refused;
    for (std::size_t i = 0; i < places.size(); ++i) {
        places[i]->offset_bytes = pictures[i].offset_bytes;
        if (pictures[i].offset_bytes < 0) refused.push_back(places[i] - views.data());
    }
    prepared_ += std::ssize(refused);
    decoded_ += std::ssize(places) - std::ssize(refused);
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
    resizer_.enqueue(batch, decoded.pictures(), images);
    decoded.release();
}

std::string DecodedPictures::summary() const {
    return fmt::format("the GPU decoded {} training images of rank 0, the CPU {}", decoded_.load(),
                       prepared_.load());
}

}  // namespace hpcai::data
