// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <hpcai/data/climate_file.hpp>
#include <hpcai/data/generate.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/storage/manifest.hpp>

#include "annotated_folder.hpp"
#include "staging.hpp"

/// Sets of each kind of data, read from the disk of a node.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;

/// Pixels and boxes of all samples as trained on and as evaluated, names and labels.
struct Content {
    std::vector<std::string> names;
    std::vector<std::int32_t> labels;
    std::vector<std::byte> pixels;
    std::vector<float> boxes;
    std::vector<std::string> reasons;
    bool operator==(const Content&) const = default;
};

Content content_of(const SampleSet& set) {
    Content content;
    const SampleFormat& format = set.format();
    for (std::uint32_t sample = 0; sample < set.samples(); ++sample) {
        content.names.push_back(set.name(sample));
        content.labels.push_back(set.label(sample));
        for (const bool trains : {true, false}) {
            std::vector<std::byte> pixels(format.pixel_bytes());
            std::vector<float> boxes(format.box_values());
            const SampleView view{pixels, boxes};
            content.reasons.push_back(
                trains ? set.training_sample(sample, CounterStream(1, RandomPurpose::test, sample),
                                             view)
                       : set.evaluation_sample(sample, view));
            content.pixels.insert(content.pixels.end(), pixels.begin(), pixels.end());
            content.boxes.insert(content.boxes.end(), boxes.begin(), boxes.end());
        }
    }
    return content;
}

class StagedSets : public testing::Test {
protected:
    StagedSets() : config_(test::staging_config(folder_.path() / "local")) {
        fs::create_directories(folder_.path() / "local");
        config_.data.staging = config::Staging::all;
    }

    SampleSets open(bool staged) const {
        const std::unique_ptr<comm::Communicator> alone = comm::make_self_communicator();
        const plan::ParallelismController controller({1, 1, 1}, {0});
        if (!staged) return make_sample_sets(config_, *alone);
        DataDuplicator duplicator(config_, controller, *alone, 2);
        return make_sample_sets(config_, *alone, &duplicator);
    }
    fs::path root() const { return folder_.path() / "set"; }

    /// Expects that staged sets do not need `gone`, a folder of the source.
    void expect_equal(const fs::path& gone) const {
        Content training, validation;
        {
            const SampleSets unstaged = open(false);
            training = content_of(*unstaged.training);
            validation = content_of(*unstaged.validation);
        }
        const SampleSets staged = open(true);
        EXPECT_GT(staged.staging.record.copied_bytes, 0);
        fs::rename(gone, folder_.path() / "gone");
        EXPECT_TRUE(content_of(*staged.training) == training);
        EXPECT_TRUE(content_of(*staged.validation) == validation);
        EXPECT_EQ(training.reasons, std::vector<std::string>(training.reasons.size()));
    }

    test::TemporaryFolder folder_;
    config::Config config_;
};

TEST_F(StagedSets, OfClassFoldersHaveTheSamePixels) {
    generate_photographs({.directory = root(),
                          .classes = 3,
                          .training_per_class = 7,
                          .validation_per_class = 4,
                          .size = 60},
                         1);
    config_.workload.classes = 3;
    config_.workload.image_size = 24;
    config_.data.kind = config::DataKind::image_folder;
    config_.data.path = (root() / "train").string();
    config_.data.validation_path = (root() / "val").string();
    expect_equal(root());
}

TEST_F(StagedSets, OfAnnotatedPicturesHaveTheSamePixelsAndBoxes) {
    test::VocFolder voc;
    voc.add("x", 40, 30, test::voc_object("cat", "3", "4", "20", "21"));
    voc.add("y", 30, 50, test::voc_object("dog", "5", "6", "25", "40"));
    config_.workload.kind = config::WorkloadKind::object_detection;
    config_.workload.classes = 2;
    config_.workload.image_size = 32;
    config_.data.kind = config::DataKind::voc;
    config_.data.path = voc.path().string();
    config_.data.training_split = config_.data.validation_split = "train";
    expect_equal(voc.path() / "JPEGImages");
}

TEST_F(StagedSets, OfWeatherHaveTheSameFields) {
    constexpr int kHeight = 8, kWidth = 12;
    const auto write = [&](const std::string& name, std::int64_t samples) {
        fs::create_directories((root() / name).parent_path());
        ClimateFileWriter file(root() / name, {samples, kHeight, kWidth, {}});
        std::vector<float> fields(kClimateChannels * kHeight * kWidth);
        for (std::int64_t sample = 0; sample < samples; ++sample) {
            for (std::size_t i = 0; i < fields.size(); ++i) {
                fields[i] = 1 + static_cast<float>(i % 7) + static_cast<float>(sample);
            }
            file.write(sample, fields, std::vector<Box>{{1, 2, 5, 6, 2}});
        }
        file.finish();
    };
    write("train/a.h5", 2);
    write("train/b.h5", 3);
    write("test.h5", 2);
    storage::write_manifest(root() / "train");
    config_.workload.kind = config::WorkloadKind::extreme_weather;
    config_.workload.image_size = kHeight;
    config_.workload.image_width = kWidth;
    config_.workload.channels = kClimateChannels;
    config_.workload.classes = kClimateCategories;
    config_.data.kind = config::DataKind::climate_hdf5;
    config_.data.path = (root() / "train").string();
    config_.data.validation_path = (root() / "test.h5").string();
    TranscodeOptions options;
    options.files = climate_files_at(root() / "train");
    options.output = folder_.path() / "records";
    options.dtype = tensor::DType::f32;
    transcode(options);
    {
        const fs::path before = fs::current_path();
        const std::string whole = config_.data.validation_path;
        fs::current_path(root());
        config_.data.validation_path = "test.h5";
        EXPECT_EQ(open(true).validation->samples(), 2);
        config_.data.validation_path = whole;
        fs::current_path(before);
    }
    fs::remove_all(folder_.path() / "local");
    fs::create_directories(folder_.path() / "local");
    expect_equal(root());

    config_.data.path = config_.data.validation_path = options.output.string();
    fs::create_directories(root());
    const SampleSets records = open(false);
    const Content training = content_of(*records.training);
    fs::rename(options.output, folder_.path() / "records2");
    config_.data.path = config_.data.validation_path = (folder_.path() / "records2").string();
    const SampleSets staged = open(true);
    fs::remove_all(folder_.path() / "records2");
    EXPECT_TRUE(content_of(*staged.training) == training);
}

}  // namespace
}  // namespace hpcai::data
