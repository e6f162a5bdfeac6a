// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>

#include <gmock/gmock.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/record_set.hpp>
#include <hpcai/data/sources.hpp>
#include <hpcai/data/transcode.hpp>
#include <hpcai/storage/manifest.hpp>
#include <hpcai/tensor/half.hpp>

#include "annotated_folder.hpp"
#include "data/climate_set.hpp"

/// ExtremeWeather samples from files, as the network reads them.
namespace hpcai::data {
namespace {

namespace fs = std::filesystem;
using test::refusal;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kFileHeight = 8, kFileWidth = 12;
constexpr std::size_t kFilePixels = kFileHeight * kFileWidth;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Returns the fields of sample `number`; each value encodes its channel, row and column.
std::vector<float> fields_of(int number) {
    const auto [mean, deviation] = default_statistics();
    std::vector<float> fields(kClimateChannels * kFilePixels);
    for (std::size_t i = 0; i < fields.size(); ++i) {
        const std::size_t channel = i / kFilePixels;
        const float place = static_cast<float>(i % kFilePixels) / kFilePixels - 0.5f;
        fields[i] = static_cast<float>(mean[channel] +
                                       deviation[channel] *
                                           (place + 0.1 * static_cast<double>(channel) + number));
    }
    return fields;
}

class LoadedClimate : public testing::Test {
protected:
    LoadedClimate() {
        config_.workload.image_size = kFileHeight;
        config_.workload.image_width = kFileWidth;
        config_.workload.channels = kClimateChannels;
        config_.workload.classes = kClimateCategories;
        config_.data.kind = config::DataKind::climate_hdf5;
        config_.data.path = (folder_.path() / "train").string();
        config_.data.validation_path = (folder_.path() / "test").string();
        config_.data.max_boxes = 15;
        write("train/a.h5", {0, 1});
        write("train/b.h5", {2, 3, 4});
        write("test/c.h5", {5});
    }

    void write(const std::string& name, const std::vector<int>& numbers, float first = 0) {
        fs::create_directories((folder_.path() / name).parent_path());
        ClimateFileWriter file(
            folder_.path() / name,
            {static_cast<std::int64_t>(numbers.size()), kFileHeight, kFileWidth, {}});
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            std::vector<float> fields = fields_of(numbers[i]);
            if (first != 0) fields[0] = first;
            file.write(static_cast<std::int64_t>(i), fields,
                       std::vector<Box>{{1, 2, 5, 6, numbers[i] % 4 + 1}});
        }
        file.finish();
    }
    /// Transcodes `from` to `to`, with the statistics of `statistics` unless it is empty.
    void transcode_set(const std::string& from, const std::string& to,
                       const std::string& statistics = "") {
        TranscodeOptions options;
        options.files = climate_files_at(folder_.path() / from);
        options.output = folder_.path() / to;
        options.dtype = dtype_;
        if (!statistics.empty()) options.statistics_from = folder_.path() / statistics;
        transcode(options);
    }
    void use_records() {
        transcode_set("train", "train_records");
        transcode_set("test", "test_records", "train_records");
        config_.data.path = (folder_.path() / "train_records").string();
        config_.data.validation_path = (folder_.path() / "test_records").string();
    }
    SampleSets load() const {
        const auto group = comm::make_self_communicator();
        return make_sample_sets(config_, *group);
    }

    test::TemporaryFolder folder_;
    config::Config config_;
    tensor::DType dtype_ = tensor::DType::f32;
};

struct LoadedSample {
    explicit LoadedSample(const SampleSet& set, std::uint32_t number)
        : bytes(set.format().pixel_bytes(), std::byte{1}), boxes(set.format().box_values()) {
        reason = set.evaluation_sample(number, {bytes, boxes});
    }
    float number(std::size_t index) const {
        float value = 0;
        std::memcpy(&value, bytes.data() + index * sizeof value, sizeof value);
        return value;
    }
    std::vector<std::byte> bytes;
    std::vector<float> boxes;
    std::string reason;
};

TEST_F(LoadedClimate, Hdf5FilesAreOneSetInTheOrderOfTheirNames) {
    const SampleSets sets = load();
    ASSERT_EQ(sets.training->samples(), 5);
    ASSERT_EQ(sets.validation->samples(), 1);
    EXPECT_EQ(sets.training->format(),
              (SampleFormat{kFileHeight, kFileWidth, 16, tensor::DType::f32, 15}));
    EXPECT_EQ(sets.training->name(1), "a.h5/1");
    EXPECT_EQ(sets.training->name(2), "b.h5/0");
    EXPECT_THAT(sets.training->location(4), HasSubstr((folder_.path() / "train/b.h5/2").string()));
    for (std::uint32_t sample = 0; sample < 5; ++sample) {
        const auto category = static_cast<std::int32_t>(sample % 4 + 1);
        EXPECT_THAT(sets.training->boxes(sample), ElementsAre(Box{1, 2, 5, 6, category}));
        const LoadedSample got(*sets.training, sample);
        EXPECT_EQ(got.reason, "");
        EXPECT_EQ(got.boxes[4], static_cast<float>(category));
        double largest_error = 0;
        for (std::size_t i = 0; i < kFilePixels * 16; ++i) {
            const double expected = static_cast<double>(i / 16) / kFilePixels - 0.5 +
                                    0.1 * static_cast<double>(i % 16) + sample;
            largest_error = std::max(largest_error, std::abs(got.number(i) - expected));
        }
        EXPECT_LT(largest_error, 2e-5);  // pressures are stored in steps of 2^-7 Pa
    }
}

TEST_F(LoadedClimate, RecordsHaveTheirOwnNumbersStatisticsAndType) {
    for (const tensor::DType dtype : {tensor::DType::f32, tensor::DType::f16}) {
        dtype_ = dtype;
        fs::remove_all(folder_.path() / "train_records");
        fs::remove_all(folder_.path() / "test_records");
        use_records();
        const SampleSets sets = load();
        EXPECT_EQ(sets.training->format().dtype, dtype);
        ASSERT_EQ(sets.training->samples(), 5);
        EXPECT_THAT(sets.training->boxes(3), ElementsAre(Box{1, 2, 5, 6, 4}));
        const RecordSet records(folder_.path() / "train_records");
        const auto expected = records.record(3);
        const LoadedSample got(*sets.training, 3);
        EXPECT_EQ(got.reason, "");
        EXPECT_TRUE(std::ranges::equal(got.bytes, expected));
    }
}

TEST_F(LoadedClimate, ValuesThatAreNotFiniteMakeASampleBad) {
    write("train/a.h5", {0, 1}, kNan);
    const SampleSets sets = load();
    const LoadedSample got(*sets.training, 0);
    EXPECT_EQ(got.reason, "not all of its values are finite");
    EXPECT_EQ(got.bytes, std::vector<std::byte>(got.bytes.size()));
    EXPECT_EQ(LoadedSample(*sets.training, 2).reason, "");
    SourceSettings settings;
    TrainingSource source(sets.training, settings, 1, 0);
    source.begin_epoch(0, {2, 0});
    source.next();
    EXPECT_THAT(refusal([&] { source.next(); }), AllOf(HasSubstr("a.h5/0"), HasSubstr("finite")));
    settings.on_bad_sample = config::BadSamplePolicy::skip;
    TrainingSource skipping(sets.training, settings, 1, 0);
    skipping.begin_epoch(0, {0, 3});
    EXPECT_EQ(skipping.next().boxes.as<float>()[4], 4);
    EXPECT_EQ(skipping.bad_samples().count, 1);
}

TEST_F(LoadedClimate, AugmentationLeavesTheZerosOfABadSample) {
    write("train/a.h5", {0, 1}, kNan);
    config_.data.climate_augmentation = true;
    const SampleSets sets = load();
    LoadedSample got(*sets.training, 0);
    for (std::uint32_t draw = 0; draw < 8; ++draw) {  // flipped in about half of the draws
        const CounterStream random(2, RandomPurpose::augmentation, draw);
        EXPECT_NE(sets.training->training_sample(0, random, {got.bytes, got.boxes}), "");
        EXPECT_EQ(got.bytes, std::vector<std::byte>(got.bytes.size()));
    }
}

TEST_F(LoadedClimate, ValuesThatThePrecisionCannotHoldMakeASampleBad) {
    write("train/a.h5", {0, 1}, 1e30F);
    config_.data.climate_precision = config::FieldPrecision::fp16;
    EXPECT_EQ(LoadedSample(*load().training, 0).reason, "not all of its values are finite");
    EXPECT_EQ(LoadedSample(*load().training, 2).reason, "");
    config_.data.climate_precision = config::FieldPrecision::fp32;
    EXPECT_EQ(LoadedSample(*load().training, 0).reason, "");
}

TEST_F(LoadedClimate, AnotherPressureLevelIsRejected) {
    use_records();
    const fs::path index = folder_.path() / "test_records" / kRecordIndexName;
    std::ifstream in(index);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    text.replace(text.find("Z1000"), 5, "Z100");
    std::ofstream(index) << text;
    fs::remove(index.parent_path() / storage::kManifestName);
    EXPECT_THAT(refusal([&] { load(); }),
                AllOf(HasSubstr("test_records: channel 13 is Z100, but in"), HasSubstr("Z1000")));

    std::vector<float> fields = fields_of(0);
    std::fill_n(fields.begin() + 13 * kFilePixels, kFilePixels, 16000.0F);
    ClimateFileWriter file(folder_.path() / "train/b.h5", {1, kFileHeight, kFileWidth, {}});
    file.write(0, fields, {});
    file.finish();
    config_.data.path = (folder_.path() / "train").string();
    EXPECT_THAT(refusal([&] { load(); }),
                AllOf(HasSubstr("train/b.h5: channel 13 is Z100"), HasSubstr("data transcode")));
}

TEST_F(LoadedClimate, BoxesWithoutAreaAreNoted) {
    EXPECT_TRUE(load().notes.empty());
    ClimateFileWriter file(folder_.path() / "test/c.h5", {1, kFileHeight, kFileWidth, {}});
    file.write(0, fields_of(0), std::vector<Box>{{1, 2, 5, 6, 1}, {3, 3, 3, 5, 1}});
    file.finish();
    EXPECT_THAT(load().notes, ElementsAre(AllOf(HasSubstr("/test: boxes left out: 1 without"))));
}

TEST_F(LoadedClimate, SyntheticAndDuplicateFilesAreDisqualifications) {
    for (const bool as_records : {false, true}) {
        SCOPED_TRACE(as_records);
        for (const char* name : {"train_records", "test_records"}) {
            fs::remove_all(folder_.path() / name);
        }
        config_.data.path = (folder_.path() / "train").string();
        config_.data.validation_path = (folder_.path() / "test").string();
        write("test/c.h5", {5});
        fs::remove(folder_.path() / "test/d.h5");
        fs::remove(folder_.path() / "train/e.h5");
        if (as_records) use_records();
        EXPECT_THAT(load().disqualifications, ElementsAre());

        fs::copy_file(folder_.path() / "train/b.h5", folder_.path() / "test/d.h5");
        fs::copy_file(folder_.path() / "train/b.h5", folder_.path() / "train/e.h5");
        ClimateFileWriter file(folder_.path() / "test/c.h5",
                               {1, kFileHeight, kFileWidth, {{"generator", "hpcai500-climate-2"}}});
        file.write(0, fields_of(5), {});
        file.finish();
        for (const char* name : {"train_records", "test_records"}) {
            fs::remove_all(folder_.path() / name);
        }
        if (as_records) use_records();
        EXPECT_THAT(
            load().disqualifications,
            ElementsAre("training file 'e.h5' has the same contents as training file 'b.h5'",
                        "test file 'c.h5' is synthetic, made by hpcai500-climate-2",
                        "test file 'd.h5' has the same contents as training file 'b.h5'"));
    }
}

TEST_F(LoadedClimate, ADamagedRecordIsABadSample) {
    use_records();
    fs::path records;  // of the first file by name
    for (const auto& entry : fs::directory_iterator(folder_.path() / "train_records")) {
        const bool is_before = records.empty() || entry.path() < records;
        if (entry.path().extension() == ".bin" && is_before) records = entry.path();
    }
    ASSERT_FALSE(records.empty());
    std::fstream file(records, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(17);
    file.put('x');
    file.close();
    const SampleSets sets = load();
    const LoadedSample got(*sets.training, 0);
    EXPECT_THAT(got.reason, HasSubstr(records.string()));
    EXPECT_EQ(got.bytes, std::vector<std::byte>(got.bytes.size()));
    EXPECT_EQ(LoadedSample(*sets.training, 1).reason, "");
}

TEST_F(LoadedClimate, SetsWithDifferentNormalizationsAreRejected) {
    transcode_set("train", "train_records");
    transcode_set("test", "test_records");
    config_.data.path = (folder_.path() / "train_records").string();
    config_.data.validation_path = (folder_.path() / "test_records").string();
    EXPECT_THAT(refusal([&] { load(); }), AllOf(HasSubstr(config_.data.validation_path),
                                                HasSubstr("mean and deviation differ")));
    config_.data.validation_path = (folder_.path() / "test").string();
    EXPECT_THAT(refusal([&] { load(); }), HasSubstr("mean and deviation differ"));
    dtype_ = tensor::DType::bf16;
    transcode_set("test", "test_bf16", "train_records");
    config_.data.validation_path = (folder_.path() / "test_bf16").string();
    EXPECT_THAT(refusal([&] { load(); }), HasSubstr("the values are bf16"));
}

TEST_F(LoadedClimate, FilesThatDoNotFitTheWorkloadAreRejected) {
    config_.workload.image_width = kFileWidth + 4;
    EXPECT_THAT(refusal([&] { load(); }),
                AllOf(HasSubstr("a.h5"), HasSubstr("8 x 12"), HasSubstr("8 x 16")));
    config_.workload.image_width = kFileWidth;
    use_records();
    config_.workload.image_size = kFileHeight + 1;
    EXPECT_THAT(refusal([&] { load(); }), HasSubstr("train_records"));
    config_.workload.image_size = kFileHeight;
    EXPECT_EQ(load().training->samples(), 5);
    config_.data.path = (folder_.path() / "nothing").string();
    EXPECT_THAT(refusal([&] { load(); }), HasSubstr("nothing"));
}

TEST_F(LoadedClimate, FilesWhoseNamesAreNotOneLineOfTextAreRejected) {
    write("train/two\nlines.h5", {6});
    EXPECT_THAT(refusal([&] { load(); }), HasSubstr("two\\nlines.h5': expected a name in UTF-8"));
}

TEST_F(LoadedClimate, MoreBoxesThanAllowedAreRejectedWithTheirSample) {
    ClimateFileWriter file(folder_.path() / "train/b.h5", {1, kFileHeight, kFileWidth, {}});
    file.write(0, fields_of(0), std::vector<Box>{{1, 2, 5, 6, 1}, {1, 2, 5, 7, 1}});
    file.finish();
    config_.data.max_boxes = 1;
    EXPECT_THAT(refusal([&] { load(); }),
                AllOf(HasSubstr("b.h5/0"), HasSubstr("2 boxes, but data.max_boxes is 1")));
}

}  // namespace
}  // namespace hpcai::data
