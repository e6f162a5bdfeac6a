// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/data/transforms.hpp>

#include "annotated_folder.hpp"

/// Images with boxes, as the network reads them.
namespace hpcai::data {
namespace {

using test::refusal;
using test::slope_picture;
using test::voc_object;
using test::VocFolder;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kInputWidth = 24, kInputHeight = 16;  // of the network's input

/// The memory for a sample.
struct Written {
    std::vector<std::uint8_t> pixels = std::vector<std::uint8_t>(kInputWidth * kInputHeight * 3);
    std::vector<float> boxes = std::vector<float>(15 * kBoxValues, -1.0f);
    std::string reason;

    SampleView view() { return {std::as_writable_bytes(std::span(pixels)), boxes}; }
    std::vector<Box> found() const {
        std::vector<Box> all;
        for (std::size_t i = 0; i < boxes.size() && boxes[i + 4] != 0; i += kBoxValues) {
            all.push_back({boxes[i], boxes[i + 1], boxes[i + 2], boxes[i + 3],
                           static_cast<std::int32_t>(boxes[i + 4])});
        }
        return all;
    }
    const std::uint8_t* pixel(int x, int y) const {
        return pixels.data() + (y * kInputWidth + x) * 3;
    }
};

/// An image of 96 x 32 pixels with a box and a different colour in each corner.
class AnnotatedSamples : public testing::Test {
protected:
    void SetUp() override {
        folder_.add("a", 96, 32, voc_object("b", "9", "5", "40", "16"));
        data_.max_boxes = 15;
    }
    ResizedPictures make() const {
        return make_annotated_samples(read_voc(folder_.path(), "train", {}), data_,
                                      {kInputWidth, kInputHeight});
    }
    Written evaluated(const SampleSet& set, std::uint32_t sample = 0) const {
        Written written;
        written.reason = set.evaluation_sample(sample, written.view());
        return written;
    }
    Written trained(const SampleSet& set, std::uint32_t number) const {
        Written written;
        written.reason = set.training_sample(
            0, CounterStream(1, RandomPurpose::augmentation, number), written.view());
        return written;
    }

    VocFolder folder_;
    config::DataConfig data_;
};

TEST_F(AnnotatedSamples, AreStretchedAsAWholeAndTheirBoxesToo) {
    const auto set = make().samples;
    EXPECT_EQ(set->format(), (SampleFormat{kInputHeight, kInputWidth, 3, tensor::DType::u8, 15}));
    EXPECT_THAT(set->boxes(0), ElementsAre(Box{2, 2, 10, 8, 1}));
    const Written got = evaluated(*set);
    EXPECT_EQ(got.reason, "");
    EXPECT_THAT(got.found(), ElementsAre(Box{2, 2, 10, 8, 1}));
    EXPECT_TRUE(std::all_of(got.boxes.begin() + kBoxValues, got.boxes.end(),
                            [](float number) { return number == 0; }));
    const Image whole = decode_image(test::read_file_bytes(folder_.picture("a"))).image;
    std::vector<std::uint8_t> expected(got.pixels.size());
    resize_bilinear(whole.view(), full_resize_request(whole.view(), kInputWidth, kInputHeight),
                    expected);
    EXPECT_EQ(got.pixels, expected);
}

TEST_F(AnnotatedSamples, AreMirroredTogetherWithTheirBoxes) {
    const Written plain = evaluated(*make().samples);
    const auto differences = [&](const Written& got, bool flip, bool vertical) {
        int count = 0;
        for (int y = 0; y < kInputHeight; ++y) {
            for (int x = 0; x < kInputWidth; ++x) {
                const auto* from = plain.pixel(flip ? kInputWidth - 1 - x : x,
                                               vertical ? kInputHeight - 1 - y : y);
                count += !std::equal(from, from + 3, got.pixel(x, y));
            }
        }
        return count;
    };
    for (const bool flip : {false, true}) {
        for (const bool vertical : {false, true}) {
            data_.flip_probability = flip;
            data_.vertical_flip_probability = vertical;
            const Written got = trained(*make().samples, 0);
            EXPECT_EQ(differences(got, flip, vertical), 0);
            EXPECT_EQ(differences(got, !flip, vertical) == 0, false);
            EXPECT_THAT(got.found(),
                        ElementsAre(Box{flip ? 14.0f : 2.0f, vertical ? 8.0f : 2.0f,
                                        flip ? 22.0f : 10.0f, vertical ? 14.0f : 8.0f, 1}));
        }
    }
}

TEST_F(AnnotatedSamples, AreMirroredAsOftenAsConfigured) {
    data_.flip_probability = 0.25;
    const auto set = make().samples;
    int mirrored = 0;
    constexpr int kDraws = 400;
    for (std::uint32_t i = 0; i < kDraws; ++i) mirrored += trained(*set, i).found()[0].x1 == 14;
    EXPECT_NEAR(mirrored, kDraws / 4, 35);  // four standard deviations
}

TEST_F(AnnotatedSamples, BoxesNarrowerThanAPixelAreOmittedAndCounted) {
    // 96 columns become 24, so three columns are less than a pixel and four are one. 32 rows become
    // 16.
    folder_.add("b", 96, 32,
                voc_object("b", "1", "1", "3", "20") + voc_object("b", "1", "1", "4", "20") +
                    voc_object("b", "1", "5", "30", "5.5") + voc_object("b", "1", "5", "30", "6"));
    const ResizedPictures made = make();
    EXPECT_EQ(made.narrow_boxes, 2);
    EXPECT_THAT(made.samples->boxes(1), ElementsAre(Box{0, 0, 1, 10, 1}, Box{0, 2, 7.5f, 3, 1}));
}

TEST_F(AnnotatedSamples, TooManyBoxesAreRejectedWithThePicture) {
    std::string objects;
    for (int i = 0; i < 16; ++i) objects += voc_object("b", "1", "1", "90", "20");
    folder_.add("many", 96, 32, objects);
    const std::string said = refusal([&] { make(); });
    EXPECT_THAT(said, HasSubstr(folder_.picture("many").string()));
    EXPECT_THAT(said, HasSubstr("16 boxes, but data.max_boxes is 15"));
    data_.max_boxes = 16;
    EXPECT_EQ(make().samples->boxes(1).size(), 16U);
}

TEST_F(AnnotatedSamples, APictureOfAnotherSizeThanAnnotatedIsBad) {
    test::write_file_bytes(folder_.picture("a"), encode_jpeg(slope_picture(32, 96).view(), 90));
    EXPECT_EQ(evaluated(*make().samples).reason, "32 x 96 pixels, but annotated as 96 x 32");
    EXPECT_NE(trained(*make().samples, 0).reason, "");
}

TEST_F(AnnotatedSamples, ADecoderWarningCountsOnlyForAnUndamagedPicture) {
    std::vector<std::uint8_t> warned = test::read_fixture("warning_version.jpg");  // 45 x 35 pixels
    for (const auto& [width, cut, count] :
         {std::tuple{45, 0, 1}, std::tuple{96, 0, 0}, std::tuple{45, 2, 0}}) {
        test::write_text(folder_.annotation("a"),
                         test::voc_text(width, 35, voc_object("b", "9", "5", "40", "16")));
        warned.resize(warned.size() - static_cast<std::size_t>(cut));
        test::write_file_bytes(folder_.picture("a"), warned);
        const auto set = make().samples;
        EXPECT_EQ(evaluated(*set).reason.empty(), count == 1) << width << " " << cut;
        EXPECT_EQ(set->decoder_warnings().count, count) << width << " " << cut;
    }
}

TEST_F(AnnotatedSamples, ADamagedPictureIsBadAndGreyWithItsBoxes) {
    test::write_file_bytes(folder_.picture("a"), {1, 2, 3});
    const Written got = evaluated(*make().samples);
    EXPECT_NE(got.reason, "");
    EXPECT_EQ(got.pixels, std::vector<std::uint8_t>(got.pixels.size(), 128));
    EXPECT_EQ(got.found().size(), 1U);
}

TEST_F(AnnotatedSamples, TheCacheChangesNothingAndReadsFilesOnce) {
    const Written before = trained(*make().samples, 3);
    data_.decoded_cache_mib = 1;
    const auto set = make().samples;
    EXPECT_EQ(trained(*set, 3).pixels, before.pixels);
    std::filesystem::remove(folder_.picture("a"));
    EXPECT_EQ(trained(*set, 3).pixels, before.pixels);
}

TEST_F(AnnotatedSamples, OfARunKeepTrainingPicturesOnly) {
    test::write_text(folder_.list("test"), "a\n");
    config::Config config;
    config.workload.image_size = kInputHeight;
    config.workload.image_width = kInputWidth;
    config.workload.classes = 1;
    config.data.kind = config::DataKind::voc;
    config.data.path = folder_.path().string();
    config.data.decoded_cache_mib = 1;
    const auto group = comm::make_self_communicator();
    const SampleSets sets = make_sample_sets(config, *group);
    EXPECT_EQ(trained(*sets.training, 0).reason, "");
    EXPECT_EQ(evaluated(*sets.validation).reason, "");
    std::filesystem::remove(folder_.picture("a"));
    EXPECT_EQ(trained(*sets.training, 0).reason, "");
    EXPECT_NE(evaluated(*sets.validation).reason, "");
}

TEST_F(AnnotatedSamples, OfARunHaveTheClassesOfItsTrainingSet) {
    folder_.add("c", 40, 30, voc_object("c", "1", "1", "30", "30"));
    test::write_text(folder_.list("test"), "c\n");
    config::Config config;
    config.workload.image_size = kInputHeight;
    config.workload.image_width = kInputWidth;
    config.workload.classes = 2;
    config.data.kind = config::DataKind::voc;
    config.data.path = folder_.path().string();
    const auto group = comm::make_self_communicator();
    SampleSets sets = make_sample_sets(config, *group);
    EXPECT_EQ(sets.training->samples(), 2);
    EXPECT_EQ(sets.validation->samples(), 1);
    EXPECT_EQ(sets.validation->boxes(0)[0].category, 2);
    EXPECT_TRUE(sets.notes.empty());
    EXPECT_EQ(sets.validation->class_name(2), "c");
    config.data.class_names = {"c"};
    config.workload.classes = 1;
    sets = make_sample_sets(config, *group);
    EXPECT_EQ(sets.validation->boxes(0)[0].category, 1);
    ASSERT_EQ(sets.notes.size(), 1U);
    EXPECT_THAT(sets.notes[0], HasSubstr("1 of other classes"));
    config.data.class_names = {"C"};
    EXPECT_THAT(refusal([&] { make_sample_sets(config, *group); }),
                HasSubstr("no object of class 'C'"));
    config.data.class_names = {"b", "c"};
    EXPECT_THAT(refusal([&] { make_sample_sets(config, *group); }),
                HasSubstr("classes with objects: 2, but workload.classes is 1"));
}

}  // namespace
}  // namespace hpcai::data
