// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/box.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/transforms.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::data {

inline constexpr std::size_t kBoxNumbers = 5;  // of a row: x1, y1, x2, y2, category

/// What every sample of a set looks like when it is ready for the network.
struct SampleFormat {
    std::int64_t height = 0;  // pixels
    std::int64_t width = 0;   // pixels
    std::int64_t channels = 0;
    tensor::DType dtype = tensor::DType::u8;  // u8: pixels; f32, f16, bf16: normalized values
    std::int64_t max_boxes = 0;               // of a sample; 0: samples have a label and no boxes

    std::size_t pixel_bytes() const { return height * width * channels * tensor::size_of(dtype); }
    std::size_t box_numbers() const { return max_boxes * kBoxNumbers; }
    bool operator==(const SampleFormat&) const = default;
};

/// Where a sample is written to.
struct SampleView {
    std::span<std::byte> pixels;  // (height, width, channels) of the format's dtype
    std::span<float> boxes;       // (max_boxes, 5): x1, y1, x2, y2, category; unused rows are 0
};

/// Writes the boxes into the rows of a SampleView, the rest zeros. Throws Error(internal) when they
/// do not fit.
void write_boxes(std::span<const Box> boxes, std::span<float> rows);

/// Numbered, labelled samples that can be made ready for the network one by one. All functions
/// may be called from many threads.
class SampleSet {
public:
    virtual ~SampleSet() = default;

    virtual std::int64_t samples() const = 0;
    /// The number of classes without the background, which is category 0 of boxes.
    virtual int classes() const = 0;
    /// What boxes of a category, from 1 on, are called.
    virtual std::string class_name(std::int32_t category) const {
        return "class " + std::to_string(category);
    }
    virtual const SampleFormat& format() const = 0;
    /// The class; 0 where samples have boxes.
    virtual std::int32_t label(std::uint32_t sample) const = 0;
    /// The objects in the sample as it is evaluated, found without making its pixels where that
    /// can be. None where samples have a label.
    virtual std::vector<Box> boxes(std::uint32_t) const { return {}; }
    /// The file's path below the set's root, or a made-up name.
    virtual std::string name(std::uint32_t sample) const = 0;
    /// Returns where the sample is to be found, for messages.
    virtual std::string location(std::uint32_t sample) const { return name(sample); }

    /// Writes the sample as varied by `random`. Returns the reason when the sample is bad, and an
    /// empty string otherwise; the pixels of a bad one are what could be decoded, else grey.
    virtual std::string training_sample(std::uint32_t sample, CounterStream random,
                                        const SampleView& view) const = 0;
    /// All of a picture that is kept in a file, undivided, for others to make training pixels of.
    /// Throws DecodeError when there are no pixels in it, Error(internal) for sets made in memory.
    virtual DecodedImage whole_picture(std::uint32_t sample) const;
    /// How training_sample() would vary a whole picture of this size. Throws Error(internal) for
    /// sets made in memory.
    virtual TrainingView training_view(ImageSize size, CounterStream random) const;
    /// Writes the sample as it is evaluated; returns as above.
    virtual std::string evaluation_sample(std::uint32_t sample, const SampleView& view) const = 0;
};

class DataDuplicator;
class LocalStage;
class StagedPictures;

/// Pictures of a folder. For training, files are decoded at the largest reduction that leaves the
/// crop image_size pixels a side, and only around the crop. With data.decoded_cache_mib > 0 all of
/// a file is decoded at full size instead and kept while the budget lasts: the pixels differ
/// slightly where a file would have been reduced, but do not depend on the budget or on what is
/// kept. With data.resident_mib > 0 it is decoded at full size, too. Files that `staged` has are
/// read there.
std::shared_ptr<const SampleSet> make_folder_samples(
    SampleIndex index, const config::DataConfig& data, int image_size,
    std::shared_ptr<const StagedPictures> staged = nullptr);

enum class Split : std::uint32_t { training = 0, validation = 1 };

/// Pictures made in memory, for measuring without a file system: a pattern of 8 x 8 cells per
/// class, shifted at random, under noise. Sample i has label i % workload.classes.
std::shared_ptr<const SampleSet> make_synthetic_samples(const config::Config& config, Split split);

struct SampleSets {
    std::shared_ptr<const SampleSet> training;
    std::shared_ptr<const SampleSet> validation;
    std::vector<std::string> notes;  // for the log: what was left out of annotations
    /// "test file 'b.h5' is training file 'a.h5'": why photographs or ExtremeWeather files are not
    /// those of the benchmark.
    std::vector<std::string> objections = {};
    std::shared_ptr<LocalStage> stage = nullptr;  // that they read; null: none
    StagingRecord staging = {};
    double staging_seconds = 0;
};

/// The data of a run as data.kind says; rank 0 of `group` lists folders and reads annotations for
/// all. A `duplicator` copies what data.staging wants to each node first. Collective. Throws
/// Error(data) when they are not usable or do not fit the workload, Error(usage) when
/// workload.channels is not 3 for pictures, and what the duplicator throws.
SampleSets make_sample_sets(const config::Config& config, comm::Communicator& group,
                            DataDuplicator* duplicator = nullptr);

/// Throws Error(data), on all ranks, naming the key whose path rank 0 of `group` does not find;
/// opens nothing. Collective.
void require_data_paths(const config::DataConfig& data, comm::Communicator& group);

/// SHA-256, in hexadecimal digits, of the names and classes of all training and test samples in
/// order: what the numbers stand for by which models draw their samples. No sample is read.
std::string samples_digest(const SampleSets& samples);

}  // namespace hpcai::data
