// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/data/bad_samples.hpp>
#include <hpcai/data/image.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/staging.hpp>
#include <hpcai/data/transforms.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::data {

inline constexpr std::size_t kBoxValues = 5;  // per box: x1, y1, x2, y2, category

/// The format in which a set writes its samples.
struct SampleFormat {
    std::int64_t height = 0;  // pixels
    std::int64_t width = 0;   // pixels
    std::int64_t channels = 0;
    tensor::DType dtype =
        tensor::DType::u8;       // u8 for pixels; f32, f16 or bf16 for normalized values
    std::int64_t max_boxes = 0;  // per sample; 0 if samples have a label and no boxes

    std::size_t pixel_bytes() const { return height * width * channels * tensor::size_of(dtype); }
    std::size_t box_values() const { return max_boxes * kBoxValues; }
    bool operator==(const SampleFormat&) const = default;
};

/// The memory that a sample is written to.
struct SampleView {
    std::span<std::byte> pixels;  // (height, width, channels) of the format's dtype
    std::span<float> boxes;       // (max_boxes, 5): x1, y1, x2, y2, category; unused rows are 0
};

/// Writes the boxes to the first rows of `rows` (max_boxes, 5) and fills the others with zeros.
/// Throws Error(internal) if there are too many boxes.
void write_boxes(std::span<const Box> boxes, std::span<float> rows);

/// Numbered, labelled samples that are decoded and preprocessed on demand. Thread-safe.
class SampleSet {
public:
    virtual ~SampleSet() = default;

    virtual std::int64_t samples() const = 0;
    /// Returns the number of classes, not including the background (category 0 of boxes).
    virtual int classes() const = 0;
    /// Returns the name of a category, from 1 on.
    virtual std::string class_name(std::int32_t category) const {
        return "class " + std::to_string(category);
    }
    virtual const SampleFormat& format() const = 0;
    /// Returns the class; 0 if samples have boxes.
    virtual std::int32_t label(std::uint32_t sample) const = 0;
    /// Returns the objects in the sample without augmentation; none if samples have no boxes.
    virtual std::vector<Box> boxes(std::uint32_t) const { return {}; }
    /// Returns the path below the root of the set, "file.h5/17" for weather, or a synthetic name.
    virtual std::string name(std::uint32_t sample) const = 0;
    /// Returns the full path of the sample, or name() of a synthetic one, for messages.
    virtual std::string location(std::uint32_t sample) const { return name(sample); }

    /// Writes the sample with an augmentation drawn from `random`. Returns the reason if the sample
    /// is bad, else "". A bad image has the pixels that could be decoded, or is grey; the weather
    /// fields of a bad sample are 0.
    virtual std::string training_sample(std::uint32_t sample, CounterStream random,
                                        const SampleView& out) const = 0;
    /// Decodes an image file at full size. Throws DecodeError like decode_image(). Throws
    /// Error(internal) for all sets except those of make_folder_samples().
    virtual DecodedImage decode_full_size(std::uint32_t sample) const;
    /// Returns the augmentation that training_sample() would draw for an image of this size.
    /// Throws Error(internal) like decode_full_size().
    virtual TrainingView training_view(ImageSize size, CounterStream random) const;
    /// Writes the sample without augmentation. Returns the reason like training_sample().
    virtual std::string evaluation_sample(std::uint32_t sample, const SampleView& out) const = 0;
    /// Returns the bytes of the sample for a digest: the image file in sets of
    /// make_folder_samples(), in others the pixels of evaluation_sample(). Throws DecodeError for
    /// an image file that cannot be read.
    virtual std::vector<std::byte> contents(std::uint32_t sample) const;

    /// Returns the undamaged images for which the decoder has issued a warning so far. Images that
    /// are decoded for a subset (make_subset()) are recorded in the whole set.
    BadSampleReport decoder_warnings() const { return warned_.report(); }

protected:
    /// Adds an undamaged image to decoder_warnings() if it has a warning. Returns `decoded`.
    DecodedImage record_warning(std::uint32_t sample, DecodedImage decoded) const;

private:
    mutable BadSamples warned_;
};

class DataDuplicator;

/// Makes samples of a folder of images. For training, only the crop is decoded, downscaled by the
/// largest factor that leaves at least image_size pixels per side. With data.decoded_cache_mib > 0,
/// data.resident_mib > 0 or data.decoder gpu, images are decoded completely at full size and cached
/// up to decoded_cache_mib. Pixels then differ slightly from downscaled decoding, but do not depend
/// on the budget or the contents of the cache. Reads files from `staged` if it has them.
std::shared_ptr<const SampleSet> make_folder_samples(
    SampleIndex index, const config::DataConfig& data, int image_size,
    std::shared_ptr<const StagedPictures> staged = nullptr);

enum class Split : std::uint32_t { training = 0, validation = 1 };  // validation: the test data

/// Makes synthetic images for measurements without a file system: a pattern of 8 x 8 cells per
/// class, randomly shifted, with noise. Sample i has label i % workload.classes.
std::shared_ptr<const SampleSet> make_synthetic_samples(const config::Config& config, Split split);

struct SampleSets {
    std::shared_ptr<const SampleSet> training;
    std::shared_ptr<const SampleSet> validation;
    std::vector<std::string> notes;  // for the log: omitted annotations, unverified files
    /// Reasons why the data are not the benchmark's, for example "test file 'b.h5' has the same
    /// contents as training file 'a.h5'", or launch::kFaultsDisqualification.
    std::vector<std::string> disqualifications = {};
    /// SHA-256, in hexadecimal digits, of the names and classes of all training and test samples in
    /// order. Unless the problem class is official, it includes boxes and contents.
    std::string sha256 = "";
    StagingResult staging = {};
    /// For an architecture search: samples held out from `training`, on which the accuracy of its
    /// trials is measured. Null for other workloads.
    std::shared_ptr<const SampleSet> hold_out = nullptr;
};

/// Makes the data sets of a run. Rank 0 of `ranks` lists folders and reads annotations for all
/// ranks. A `duplicator` then copies to each node the data that data.staging selects. Throws
/// Error(data) if the data are not usable or do not fit the workload, Error(usage) if
/// workload.channels is not 3 for images, and the errors of the duplicator. Collective.
SampleSets make_sample_sets(const config::Config& config, comm::Communicator& ranks,
                            DataDuplicator* duplicator = nullptr);

/// Opens ExtremeWeather samples at data.path and data.validation_path: folders written by `data
/// transcode`, or HDF5 files. HDF5 files are slow to read; their values are normalized with
/// default_statistics() and have data.climate_precision. A sample that is damaged or has a value
/// that is not finite is bad. Throws Error(data) naming an invalid file, fields that do not have
/// the workload's size, a sample with more than data.max_boxes boxes, or an HDF5 file with
/// geopotential heights at 100 hPa. Also throws if the sets differ in channels, normalization or
/// element type. A `duplicator` copies the files to each node before they are opened. Collective.
SampleSets load_climate(const config::Config& config, comm::Communicator& ranks,
                        DataDuplicator* duplicator = nullptr);

/// Whether an architecture search holds out the training sample `name`: the first 32 bits of the
/// name's SHA-256, divided by 2^32, are below `share`.
bool is_held_out(const std::string& name, double share);

/// Throws Error(data) naming the key if a path of the data does not exist on this node.
void require_data_paths(const config::Config& config);

/// Returns config::load(sources) with workload.classes `auto` replaced by the number of
/// data.class_names or, if there are none, of training classes. Throws like config::load(), and
/// Error(data) if the training samples cannot be read or a classifier has only one class.
config::Config load_config(const config::Sources& sources);

/// Returns the samples of a set with numbers `chosen`, renumbered from 0 in this order. Throws
/// Error(internal) for a number that is not in the set.
std::shared_ptr<const SampleSet> make_subset(std::shared_ptr<const SampleSet> samples,
                                             std::vector<std::uint32_t> chosen);

}  // namespace hpcai::data
