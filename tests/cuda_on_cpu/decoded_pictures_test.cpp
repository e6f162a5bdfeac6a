// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/data/device_pictures.hpp>
#include <hpcai/data/sources.hpp>

#include "data/fixtures.hpp"
#include "device/cuda/cuda_device.hpp"
#include "simt/device_memory.hpp"
#include "simt/libraries.hpp"
#include "simt/runtime.hpp"

/// Batches whose images the emulated nvJPEG decodes, against those that the host prepares.
namespace hpcai::data {
namespace {

using Bytes = std::vector<std::uint8_t>;
using testing::EndsWith;
using testing::HasSubstr;

class DecodedPicturesOnGpu : public testing::TestWithParam<simt::Order> {
protected:
    static constexpr int kSide = 12;
    static constexpr int kRows = 4;  // rows of a batch
    static constexpr std::uint32_t kSamples = 9;
    static constexpr std::array<std::uint32_t, 20> kOrder{0, 1, 2, 3, 3, 4, 0, 5, 6, 7,
                                                          8, 1, 2, 2, 6, 8, 7, 5, 4, 0};

    DecodedPicturesOnGpu() {
        simt::set_order(GetParam());
        simt::set_nvjpeg({});
    }
    ~DecodedPicturesOnGpu() override {
        simt::set_order(simt::Order::late);
        simt::set_nvjpeg({});
        simt::set_free_memory(~std::size_t{0});
    }
    void SetUp() override {
        for (std::uint32_t i = 0; i < kSamples; ++i) {
            CounterStream random(4, RandomPurpose::test, i);
            Image image(width(i), 140 - 9 * static_cast<int>(i));
            for (std::size_t p = 0; p < image.pixels.size(); ++p) {
                image.pixels[p] = static_cast<std::uint8_t>(p / 31 * 7 + random.below(40));
            }
            test::write_file_bytes(path(i), encode_jpeg(image.view(), 90));
        }
        gpu_ = device::cuda::make_cuda_device({.autotune = false});
    }
    static int width(std::uint32_t sample) { return 20 + 5 * static_cast<int>(sample); }
    std::filesystem::path path(std::uint32_t sample) const {
        return folder_.path() / "class" / (std::to_string(sample) + ".jpg");
    }
    std::shared_ptr<const SampleSet> samples(int side = kSide) const {
        config::DataConfig data;
        data.decoder = config::Decoder::gpu;
        data.vertical_flip_probability = 0.5;
        return make_folder_samples(scan_image_folder(folder_.path()), data, side);
    }

    struct Course {
        std::vector<Bytes> batches;  // pixels of two epochs
        BadSampleReport bad;
    };
    /// Reads two epochs. The GPU's work on a batch is awaited only after the epoch. Without
    /// `pictures`, all batches are made on the host.
    Course run(DevicePictures* pictures, int threads = 2, int side = kSide) {
        SourceSettings settings;
        settings.batch_size = kRows;
        settings.prefetch_batches = 2;
        settings.decode_threads = threads;
        settings.on_bad_sample = config::BadSamplePolicy::count;
        TrainingSource source(samples(side), settings, 5, 0, pictures);
        std::vector<std::uint32_t> order(kOrder.begin(), kOrder.end());
        Course course;
        for (std::uint32_t epoch = 0; epoch < 2; ++epoch) {
            source.begin_epoch(epoch, order);
            std::ranges::rotate(order, order.begin() + 5);  // moves every sample to another row
            std::vector<std::unique_ptr<device::Memory>> images;
            for (std::int64_t i = 0; i < source.batches(); ++i) {
                const Batch& batch = source.next();
                const auto on_host = batch.images.as<std::uint8_t>();
                course.batches.emplace_back(on_host.begin(), on_host.end());
                if (pictures == nullptr) continue;
                images.push_back(gpu_->allocate(on_host.size()));
                pictures->enqueue(batch, static_cast<std::uint8_t*>(images.back()->data()));
            }
            const std::size_t first = course.batches.size() - images.size();
            for (std::size_t i = 0; i < images.size(); ++i) {
                Bytes& pixels = course.batches[first + i];
                gpu_->download(std::as_writable_bytes(std::span(pixels)), images[i]->data());
            }
        }
        course.bad = source.bad_samples();
        return course;
    }

    test::TemporaryFolder folder_;
    std::unique_ptr<device::Device> gpu_;
};

TEST_P(DecodedPicturesOnGpu, MakeTheBatchesThatTheHostMakes) {
    const Course expected = run(nullptr);
    for (const int threads : {1, 3}) {
        simt::set_nvjpeg({});
        DecodedPictures pictures(*gpu_, kRows);
        EXPECT_EQ(run(&pictures, threads).batches, expected.batches);
        EXPECT_EQ(pictures.summary(), "the GPU decoded 40 training images of rank 0, the CPU 0");
        EXPECT_EQ(simt::nvjpeg_calls().batches, 10);  // one for each batch
        EXPECT_EQ(simt::nvjpeg_calls().pictures, 40);
    }
}

TEST_P(DecodedPicturesOnGpu, NeedNoFurtherMemoryForALaterBatchOfTheSameSize) {
    const auto batch = gpu_->make_jpeg_batch();
    const Bytes file = test::read_file_bytes(path(2));
    const auto bytes = std::as_bytes(std::span(file));
    std::vector<device::JpegFile> files(3, {{bytes.begin(), bytes.end()}, width(2), 122});
    batch->decode(files);
    const std::size_t allocated = simt::runtime().memory.allocated();
    const std::uint8_t* pictures = batch->pictures();
    batch->release();
    batch->decode(files);
    EXPECT_EQ(simt::runtime().memory.allocated(), allocated);
    EXPECT_EQ(batch->pictures(), pictures);
    EXPECT_EQ(files[1].offset_bytes % 256, 0);
    files[0].height = 121;  // as if the header were forged
    batch->release();
    batch->decode(files);
    EXPECT_EQ(files[0].offset_bytes, -1);
    EXPECT_GT(files[1].offset_bytes, 0);
    EXPECT_GE(files[2].offset_bytes, 2 * 3 * 122 * width(2));
}

TEST_P(DecodedPicturesOnGpu, LeaveFilesOfOtherFormatsToTheHost) {
    for (const auto& [sample, name] :
         {std::pair{1U, "grey.jpg"}, {2U, "progressive.jpg"}, {5U, "cmyk.jpg"}}) {
        test::write_file_bytes(path(sample), test::read_fixture(name));
    }
    Bytes truncated = test::read_file_bytes(path(3));
    truncated.resize(truncated.size() * 6 / 10);
    test::write_file_bytes(path(3), truncated);
    test::write_file_bytes(path(6), {1, 2, 3});
    const Course expected = run(nullptr);
    DecodedPictures pictures(*gpu_, kRows);
    const Course got = run(&pictures);
    EXPECT_EQ(got.batches, expected.batches);
    EXPECT_EQ(got.bad.count, 2);
    EXPECT_EQ(got.bad.first, expected.bad.first);
    EXPECT_LE(simt::nvjpeg_calls().batches, 10) << "a file was tried that nvJPEG rejects";
    EXPECT_GT(simt::nvjpeg_calls().pictures, 10);
}

TEST_P(DecodedPicturesOnGpu, LeaveToTheHostWhatTheLibraryRefuses) {
    const Course expected = run(nullptr);
    simt::set_nvjpeg({.rejected_width = width(2)});
    DecodedPictures pictures(*gpu_, kRows);
    EXPECT_EQ(run(&pictures).batches, expected.batches);
    EXPECT_EQ(pictures.summary(), "the GPU decoded 34 training images of rank 0, the CPU 6");
    EXPECT_EQ(simt::nvjpeg_calls().pictures, 34);
}

TEST_P(DecodedPicturesOnGpu, LeaveLargeImagesToTheHost) {
    const Course expected = run(nullptr, 2, 7);  // up to 112 of 140 pixels
    DecodedPictures pictures(*gpu_, kRows);
    EXPECT_EQ(run(&pictures, 2, 7).batches, expected.batches);
    EXPECT_LT(simt::nvjpeg_calls().pictures, 40);
    EXPECT_GT(simt::nvjpeg_calls().pictures, 0);
}

TEST_P(DecodedPicturesOnGpu, AreMadeByTheHostWithoutMemoryForThem) {
    const Course expected = run(nullptr);
    DecodedPictures pictures(*gpu_, kRows);
    simt::set_free_memory(10'000);  // enough for batches, but for no batch of decoded images
    EXPECT_EQ(run(&pictures).batches, expected.batches);
    EXPECT_EQ(simt::nvjpeg_calls().pictures, 0);
}

TEST_P(DecodedPicturesOnGpu, UseTheKernelsOfTheLibraryWithoutHardware) {
    EXPECT_THAT(gpu_->description(), testing::Not(HasSubstr("nvJPEG")));
    EXPECT_NE(gpu_->make_jpeg_batch(), nullptr);
    EXPECT_THAT(gpu_->description(), EndsWith(", nvJPEG 13.0.0 (hardware)"));
    simt::set_nvjpeg({.has_hardware = false});
    const auto other = device::cuda::make_cuda_device({.autotune = false});
    EXPECT_NE(other->make_jpeg_batch(), nullptr);
    EXPECT_THAT(other->description(), EndsWith(", nvJPEG 13.0.0 (GPU)"));
}

TEST_P(DecodedPicturesOnGpu, NameTheReasonWhyThereAreNone) {
    simt::set_nvjpeg({.is_missing = true});
    EXPECT_EQ(gpu_->make_jpeg_batch(), nullptr);
    EXPECT_THAT(gpu_->description(),
                EndsWith(", no nvJPEG: libnvjpeg.so.13: cannot open shared object file: No such "
                         "file or directory"));
}

INSTANTIATE_TEST_SUITE_P(Orders, DecodedPicturesOnGpu,
                         testing::Values(simt::Order::late, simt::Order::early),
                         [](const auto& order) {
                             return order.param == simt::Order::late ? "Late" : "Early";
                         });

}  // namespace
}  // namespace hpcai::data
