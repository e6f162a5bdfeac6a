// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/sample_index.hpp>
#include <hpcai/data/transforms.hpp>

namespace hpcai::data {

/// Numbered, labelled pictures that can be made ready for the network one by one. All functions
/// may be called from many threads. Pixel targets are (image_size, image_size, channels) bytes.
class SampleSet {
public:
    virtual ~SampleSet() = default;

    virtual std::int64_t samples() const = 0;
    virtual int classes() const = 0;
    virtual int image_size() const = 0;
    virtual int channels() const = 0;
    virtual std::int32_t label(std::uint32_t sample) const = 0;
    /// The file's path below the set's root, or a made-up name.
    virtual std::string name(std::uint32_t sample) const = 0;
    /// For messages: where the sample is to be found.
    virtual std::string location(std::uint32_t sample) const { return name(sample); }

    /// Writes the sample as varied by `random`. Returns the reason when the sample is bad, and an
    /// empty string otherwise; the pixels of a bad one are what could be decoded, else grey.
    virtual std::string training_pixels(std::uint32_t sample, CounterStream random,
                                        std::span<std::uint8_t> pixels) const = 0;
    /// All of a picture that is kept in a file, undivided, for others to make training pixels of.
    /// Throws DecodeError when there are no pixels in it, Error(internal) for sets made in memory.
    virtual DecodedImage whole_picture(std::uint32_t sample) const;
    /// How training_pixels() would vary a whole picture of this size. Throws Error(internal) for
    /// sets made in memory.
    virtual TrainingView training_view(ImageSize size, CounterStream random) const;
    /// Writes the sample as it is evaluated; returns as above.
    virtual std::string evaluation_pixels(std::uint32_t sample,
                                          std::span<std::uint8_t> pixels) const = 0;
};

/// Pictures of a folder. For training, files are decoded at the largest reduction that leaves the
/// crop image_size pixels a side, and only around the crop. With data.decoded_cache_mib > 0 all of
/// a file is decoded at full size instead and kept while the budget lasts: the pixels differ
/// slightly where a file would have been reduced, but do not depend on the budget or on what is
/// kept. With data.resident_mib > 0 it is decoded at full size, too.
std::shared_ptr<const SampleSet> make_folder_samples(SampleIndex index,
                                                     const config::DataConfig& data,
                                                     int image_size);

enum class Split : std::uint32_t { training = 0, validation = 1 };

/// Pictures made in memory, for measuring without a file system: a pattern of 8 x 8 cells per
/// class, shifted at random, under noise. Sample i has label i % workload.classes.
std::shared_ptr<const SampleSet> make_synthetic_samples(const config::Config& config, Split split);

struct SampleSets {
    std::shared_ptr<const SampleSet> training;
    std::shared_ptr<const SampleSet> validation;
};

/// The data of a run as data.kind says; rank 0 of `group` lists folders for all. Collective.
/// Throws Error(data) when a folder is not usable or does not fit workload.classes, Error(usage)
/// when workload.channels is not 3 for pictures.
SampleSets make_sample_sets(const config::Config& config, comm::Communicator& group);

}  // namespace hpcai::data
