// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/resident_pictures.hpp>
#include <hpcai/data/sources.hpp>

#include "data/fixtures.hpp"
#include "device/cuda/cuda_device.hpp"
#include "simt/device_memory.hpp"
#include "simt/streams.hpp"

namespace hpcai::data {
namespace {

using config::BadSamplePolicy;
using Bytes = std::vector<std::uint8_t>;
using MemoryBudget = ResidentPictures::MemoryBudget;

constexpr int kSide = 12;
constexpr int kRows = 4;  // rows of a batch
constexpr std::uint32_t kSamples = 9;
constexpr std::size_t kAll = std::size_t{1} << 20;  // bytes, more than all images need
const std::vector<std::uint32_t> kOrder{0, 1, 2, 3, 3, 4, 0, 5, 6, 7, 8, 1, 2, 2, 6, 8};

/// Nine images of different sizes; some are reduced to a twelfth.
class ResidentPicturesOnGpu : public testing::Test {
protected:
    void SetUp() override {
        for (std::uint32_t i = 0; i < kSamples; ++i) {
            CounterStream random(4, RandomPurpose::test, i);
            Image image(20 + static_cast<int>(random.below(60)), 144 - 9 * static_cast<int>(i));
            for (std::size_t p = 0; p < image.pixels.size(); ++p) {
                image.pixels[p] = static_cast<std::uint8_t>(p / 31 * 7 + random.below(40));
            }
            test::write_file_bytes(path(i), encode_jpeg(image.view(), 90));
        }
    }
    std::filesystem::path path(std::uint32_t sample) const {
        return folder_.path() / "class" / (std::to_string(sample) + ".jpg");
    }
    void damage(std::uint32_t sample, double share_kept) const {
        Bytes bytes = test::read_file_bytes(path(sample));
        bytes.resize(static_cast<std::size_t>(share_kept * static_cast<double>(bytes.size())));
        test::write_file_bytes(path(sample), bytes);
    }
    std::shared_ptr<const SampleSet> samples(int side) const {
        config::DataConfig data;
        data.resident_mib = 1;
        data.vertical_flip_probability = 0.5;
        return make_folder_samples(scan_image_folder(folder_.path()), data, side);
    }

    struct Course {
        std::vector<Bytes> batches;  // pixels of three epochs
        BadSampleReport bad;
        ResidentPictures::Contents contents;
    };
    /// Reads three epochs with `bytes` of device memory for images; 0: all batches are made on the
    /// host.
    Course run(std::size_t bytes, int threads = 2, int side = kSide) {
        SourceSettings settings;
        settings.batch_size = kRows;
        settings.decode_threads = threads;
        settings.on_bad_sample = BadSamplePolicy::count;
        std::unique_ptr<ResidentPictures> pictures;
        if (bytes > 0)
            pictures = std::make_unique<ResidentPictures>(*gpu_, MemoryBudget{bytes, kRows});
        TrainingSource source(samples(side), settings, 5, 0, pictures.get());
        std::vector<std::uint32_t> order = kOrder;
        Course course;
        for (std::uint32_t epoch = 0; epoch < 3; ++epoch) {
            source.begin_epoch(epoch, order);
            std::ranges::rotate(order, order.begin() + 5);  // moves every sample to another row
            for (std::int64_t i = 0; i < source.batches(); ++i) {
                course.batches.push_back(pixels_of(source.next()));
            }
        }
        course.bad = source.bad_samples();
        if (pictures) course.contents = pictures->contents();
        return course;
    }
    Bytes pixels_of(const Batch& batch) {
        const auto on_host = batch.images.as<std::uint8_t>();
        Bytes pixels(on_host.begin(), on_host.end());
        if (batch.pictures == nullptr) return pixels;
        const auto images = gpu_->allocate(pixels.size());
        batch.pictures->enqueue(batch, static_cast<std::uint8_t*>(images->data()));
        gpu_->download(std::as_writable_bytes(std::span(pixels)), images->data());
        return pixels;
    }

    test::TemporaryFolder folder_;
    std::unique_ptr<device::Device> gpu_ = device::cuda::make_cuda_device({.autotune = false});
};

TEST_F(ResidentPicturesOnGpu, MakeTheBatchesThatTheHostMakes) {
    const Course expected = run(0);
    for (const int threads : {1, 3}) {
        const Course got = run(kAll, threads);
        EXPECT_EQ(got.batches, expected.batches);
        EXPECT_EQ(got.contents.pictures, kSamples);
    }
}

TEST_F(ResidentPicturesOnGpu, MakeThemWhereOnlySomeFindAPlace) {
    const Course expected = run(0), all = run(kAll);
    for (const std::size_t bytes : {all.contents.bytes / 3, all.contents.bytes / 2}) {
        const Course got = run(bytes);
        EXPECT_EQ(got.batches, expected.batches);
        EXPECT_GT(got.contents.pictures, 0);
        EXPECT_LT(got.contents.pictures, kSamples);
        EXPECT_LE(got.contents.bytes, bytes);
    }
}

TEST_F(ResidentPicturesOnGpu, LeaveBadSamplesToTheHost) {
    damage(3, 0.6);
    damage(6, 0.01);
    const Course expected = run(0), got = run(kAll);
    EXPECT_EQ(got.batches, expected.batches);
    EXPECT_EQ(got.bad.count, 2);
    EXPECT_EQ(got.bad.first, expected.bad.first);
    EXPECT_EQ(got.contents.pictures, kSamples - 2);
}

TEST_F(ResidentPicturesOnGpu, LeavePicturesToTheHostThatAreTooLargeForTheirReduction) {
    const Course expected = run(0, 2, 7), got = run(kAll, 2, 7);  // up to 112 of 144 pixels
    EXPECT_EQ(got.batches, expected.batches);
    EXPECT_GT(got.contents.pictures, 0);
    EXPECT_LT(got.contents.pictures, kSamples);
}

TEST_F(ResidentPicturesOnGpu, SurviveAnEpochThatIsAbandoned) {
    SourceSettings settings;
    settings.batch_size = kRows;
    ResidentPictures pictures(*gpu_, MemoryBudget{kAll, kRows});
    TrainingSource source(samples(kSide), settings, 5, 0, &pictures);
    TrainingSource on_host(samples(kSide), settings, 5, 0);
    source.begin_epoch(0, kOrder);
    source.next();  // source.next() also decodes later batches
    source.begin_epoch(1, kOrder);
    on_host.begin_epoch(1, kOrder);
    for (std::int64_t i = 0; i < source.batches(); ++i) {
        EXPECT_EQ(pixels_of(source.next()), pixels_of(on_host.next())) << i;
    }
}

// Another rank may not have completed the previous step, so only reading a result waits for its
// end.
TEST_F(ResidentPicturesOnGpu, AreUploadedDuringThePreviousStep) {
    constexpr int kLargeSide = 40;  // rows of more than a memory page
    for (const std::uint32_t sample : {1, 3, 5, 7}) damage(sample, 0.6);
    SourceSettings settings;
    settings.batch_size = static_cast<int>(kOrder.size());
    settings.on_bad_sample = BadSamplePolicy::count;
    ResidentPictures pictures(*gpu_, MemoryBudget{kAll, settings.batch_size});
    TrainingSource source(samples(kLargeSide), settings, 5, 0, &pictures);
    TrainingSource on_host(samples(kLargeSide), settings, 5, 0);
    source.begin_epoch(0, kOrder);
    on_host.begin_epoch(0, kOrder);
    const Batch& batch = source.next();
    Bytes pixels(batch.images.bytes());
    const auto images = gpu_->allocate(pixels.size());
    bool is_over = false;
    simt::enqueue(device::cuda::context_of(*gpu_).stream, [&] { is_over = true; });
    pictures.enqueue(batch, static_cast<std::uint8_t*>(images->data()));
    EXPECT_FALSE(is_over);
    EXPECT_EQ(pictures.contents().pictures, 5);
    gpu_->download(std::as_writable_bytes(std::span(pixels)), images->data());
    EXPECT_EQ(pixels, pixels_of(on_host.next()));
}

TEST_F(ResidentPicturesOnGpu, NeedMemoryThatTheGpuHasBesidesTheReserve) {
    constexpr std::size_t kHas = std::size_t{3} << 20;
    simt::set_free_memory(kHas);
    for (const MemoryBudget& budget :
         {MemoryBudget{kHas + 1, kRows}, MemoryBudget{kHas / 2, kRows, kHas / 2 + 1}}) {
        try {
            ResidentPictures(*gpu_, budget);
            ADD_FAILURE() << "no error for " << budget.bytes << " bytes";
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::usage);
            EXPECT_TRUE(std::string(error.what()).starts_with("data.resident_mib: "))
                << error.what();
        }
    }
    constexpr std::size_t kViews = kRows * sizeof(device::PictureView);
    EXPECT_NO_THROW(ResidentPictures(*gpu_, {kHas / 2, kRows, kHas / 2 - kViews}));
    simt::set_free_memory(~std::size_t{0});
}

}  // namespace
}  // namespace hpcai::data
