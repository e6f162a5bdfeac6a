// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <gtest/gtest.h>

#include <hpcai/data/image_codec.hpp>
#include <hpcai/data/transforms.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/reference/load_values.hpp>

#include "reference_photographs.hpp"

namespace hpcai::data {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int kSizes[] = {64, 224};  // image_size

std::span<const std::uint8_t> picture(const Bytes& pictures, std::size_t number, int size) {
    const std::size_t bytes = static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3;
    return std::span(pictures).subspan(number * bytes, bytes);
}

/// Forty real photographs; the references were made by Pillow 13 and torchvision 0.29.
class RealPhotographs : public testing::Test {
protected:
    void SetUp() override {
        for (const test::Photograph& photograph : photographs_.all) {
            const auto path = test::Photographs::folder() / photograph.file;
            if (!std::filesystem::exists(path)) GTEST_SKIP() << "no photograph " << path;
        }
    }

    /// Returns all evaluation images, one after the other, as a group of one rank reads them.
    Bytes evaluation_pictures(int size) const {
        SourceSettings settings;
        settings.batch_size = static_cast<int>(photographs_.all.size());
        settings.decode_threads = 2;
        EvaluationSource source(photographs_.samples({}, size), settings);
        source.begin();
        const auto pixels = source.next().images.as<std::uint8_t>();
        return {pixels.begin(), pixels.end()};
    }

    /// Returns the first layer's output for the evaluation images, (photograph, row, column,
    /// channel).
    std::vector<float> network_inputs(int size) const {
        const Bytes pixels = evaluation_pictures(size);
        const tensor::Shape shape{static_cast<std::int64_t>(photographs_.all.size()), size, size,
                                  3};
        const auto device = device::make_cpu_device({1});
        const auto kernel =
            device->build(ops::InputNormalize{shape, photographs_.facts["mean"],
                                              photographs_.facts["standard_deviation"]},
                          {tensor::DType::f32, device::Mode::inference});
        const auto input = device->allocate(pixels.size());
        const auto output = device->allocate(device::storage_bytes(shape, tensor::DType::f32));
        device->upload(input->data(), std::as_bytes(std::span(pixels)));
        device::KernelTensors tensors;
        tensors.inputs = {input->data()};
        tensors.output = output->data();
        kernel->bind(tensors);
        kernel->run(ops::Pass::forward);
        std::vector<float> values(static_cast<std::size_t>(shape.elements()));
        device::load_channels_last(*device, values, shape, tensor::DType::f32, output->data());
        return values;
    }

    /// Returns the images of both batches of the reference's epoch, which has every photograph
    /// twice.
    Bytes training_pictures(int size, int cache_mib) const {
        const auto& facts = photographs_.facts;
        config::DataConfig data;
        data.decoded_cache_mib = cache_mib;
        data.random_area_minimum = facts["area_minimum"];
        data.flip_probability = facts["flip"];
        data.vertical_flip_probability = facts["vertical_flip"];
        std::vector<std::uint32_t> order(photographs_.all.size());
        std::iota(order.begin(), order.end(), 0U);
        SourceSettings settings;
        settings.batch_size = static_cast<int>(order.size());
        settings.decode_threads = 2;
        order.insert(order.end(), order.begin(), order.begin() + settings.batch_size);
        TrainingSource source(photographs_.samples(data, size), settings, facts["seed"],
                              facts["model"]);
        source.begin_epoch(facts["epoch"], order);
        Bytes pictures;
        for (int batch = 0; batch < 2; ++batch) {
            const auto pixels = source.next().images.as<std::uint8_t>();
            pictures.insert(pictures.end(), pixels.begin(), pixels.end());
        }
        return pictures;
    }

    /// Compares training images with the reference's tensor `name`: images that are decoded reduced
    /// without a cache, the other images, or all.
    enum class Which { whole, reduced, all };
    void compare(const Bytes& pictures, int size, const std::string& name, Which which,
                 test::PixelErrors& errors) const {
        const std::size_t count = photographs_.all.size();
        for (std::size_t entry = 0; entry < 2 * count; ++entry) {
            const test::Photograph& photograph = photographs_.all[entry % count];
            const PixelBox& box = photograph.views[entry / count].box;
            const bool reduced = largest_denominator(box, size) > 1;
            if (which != Which::all && reduced != (which == Which::reduced)) continue;
            errors.add(photographs_.sample(picture(pictures, entry, size), size),
                       photographs_.row<std::uint8_t>(name + "_" + std::to_string(size),
                                                      entry % count * 2 + entry / count),
                       photograph.file + " at " + std::to_string(size));
        }
    }

    test::Photographs photographs_;
};

Bytes resized(const ImageView& source, int size) {
    Bytes pixels(static_cast<std::size_t>(size) * static_cast<std::size_t>(size) * 3);
    resize_bilinear(source, full_resize_request(source, size, size), pixels);
    return pixels;
}

TEST_F(RealPhotographs, AreTheFilesOfTheReference) {
    for (const test::Photograph& photograph : photographs_.all) {
        EXPECT_EQ(test::sha256_of(photographs_.bytes(photograph)), photograph.sha256)
            << photograph.file;
    }
}

TEST_F(RealPhotographs, DecodeToTheSameBytesAsPillowsAtEveryReduction) {
    tests::LargestError different("photograph decoding, images that differ from Pillow", 0);
    for (const test::Photograph& photograph : photographs_.all) {
        for (int power = 0; power < 4; ++power) {
            const auto decoded =
                decode_image(photographs_.bytes(photograph), {1 << power, std::nullopt});
            const auto sum = test::sha256_of(decoded.image.pixels);
            const bool equal = sum == photograph.decoded[static_cast<std::size_t>(power)];
            different.add(equal ? 0 : 1, photograph.file + " at 1/" + std::to_string(1 << power));
        }
    }
}

TEST_F(RealPhotographs, AreEvaluatedAsTorchvisionsResizeAndCenterCrop) {
    test::PixelErrors errors("evaluation image", 0, 0);
    for (const int size : kSizes) {
        const Bytes pictures = evaluation_pictures(size);
        for (std::size_t i = 0; i < photographs_.all.size(); ++i) {
            errors.add(photographs_.sample(picture(pictures, i, size), size),
                       photographs_.row<std::uint8_t>("evaluation_" + std::to_string(size), i),
                       photographs_.all[i].file);
        }
    }
}

TEST_F(RealPhotographs, AreCroppedAndResizedAsTorchvisionsResizedCrop) {
    test::PixelErrors errors("resized crop", 1, 0.1);
    for (std::size_t i = 0; i < photographs_.all.size(); ++i) {
        const test::Photograph& photograph = photographs_.all[i];
        const DecodedImage decoded = decode_image(photographs_.bytes(photograph));
        for (const int size : kSizes) {
            for (std::size_t box = 0; box < photograph.boxes.size(); ++box) {
                const Bytes got = resized(decoded.image.view().crop(photograph.boxes[box]), size);
                errors.add(photographs_.sample(got, size),
                           photographs_.row<std::uint8_t>("crops_" + std::to_string(size),
                                                          i * photograph.boxes.size() + box),
                           photograph.file + " box " + std::to_string(box));
            }
        }
    }
}

TEST_F(RealPhotographs, AreFlippedAsTorchvisionDoes) {
    constexpr int kSize = 64;
    test::PixelErrors errors("flips", 1, 0.1);
    for (std::size_t i = 0; i < photographs_.all.size(); ++i) {
        const test::Photograph& photograph = photographs_.all[i];
        const DecodedImage decoded = decode_image(photographs_.bytes(photograph));
        const Bytes crop = resized(decoded.image.view().crop(photograph.boxes[1]), kSize);
        for (const bool vertical : {false, true}) {
            Bytes got = crop;
            flip(got, {kSize, kSize}, {{}, !vertical, vertical});
            errors.add(photographs_.sample(got, kSize),
                       photographs_.row<std::uint8_t>(vertical ? "vertical_flip_64" : "flip_64", i),
                       photograph.file);
        }
    }
}

TEST_F(RealPhotographs, BecomeTheNetworkInputOfToTensorAndNormalize) {
    // Pixels agree bit by bit; numbers up to 2.7 are rounded thrice here and thrice in torchvision.
    tests::LargestError largest("network input of a photograph, fp32", 1e-6);
    for (const int size : kSizes) {
        const std::vector<float> inputs = network_inputs(size);
        const auto places = photographs_.places(size);
        for (std::size_t i = 0; i < photographs_.all.size(); ++i) {
            const auto want = photographs_.row<float>("network_input_" + std::to_string(size), i);
            for (std::size_t k = 0; k < want.size(); ++k) {
                // The script stores every fourth sampled place.
                const auto pixel = static_cast<std::size_t>(places[k / 3 * 4]) +
                                   i * static_cast<std::size_t>(size * size);
                largest.add(std::abs(inputs[pixel * 3 + k % 3] - want[k]),
                            photographs_.all[i].file);
            }
        }
    }
}

TEST_F(RealPhotographs, AreVariedForTrainingAsTorchvisionDoesWithTheNumbersOfTheStream) {
    test::PixelErrors errors("training image of a cached photograph", 1, 0.03);
    for (const int size : kSizes) {
        compare(training_pictures(size, 64), size, "views", Which::all, errors);
    }
}

TEST_F(RealPhotographs, AreTheSameWithoutACacheWhereTheCropIsTooSmallToBeReduced) {
    test::PixelErrors errors("training image decoded round its crop", 1, 0.03);
    for (const int size : kSizes) {
        compare(training_pictures(size, 0), size, "views", Which::whole, errors);
    }
}

TEST_F(RealPhotographs, AreDecodedReducedForTrainingAsPillowsDraftModeDoes) {
    test::PixelErrors errors("training image decoded reduced, against the same by Pillow", 1, 0.05);
    compare(training_pictures(64, 0), 64, "reduced_views", Which::all, errors);
}

// This difference is intended: the decoder reduces with another filter than torchvision.
TEST_F(RealPhotographs, DecodedReducedStayCloseToTorchvisionsOfTheWhole) {
    test::PixelErrors errors("training image decoded reduced, against torchvision", 50, 1.5);
    for (const int size : kSizes) {
        compare(training_pictures(size, 0), size, "views", Which::reduced, errors);
    }
}

}  // namespace
}  // namespace hpcai::data
