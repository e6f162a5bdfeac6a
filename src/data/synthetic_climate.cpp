// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/data/climate_generator.hpp>

#include "climate_set.hpp"
#include "picture_file.hpp"

namespace hpcai::data {
namespace {

std::int64_t samples_of(const config::DataConfig& data, Split split) {
    return split == Split::training ? data.synthetic_samples : data.synthetic_validation_samples;
}

/// Returns the set's part of data.decoded_cache_mib, in proportion to its number of samples.
std::size_t cache_bytes(const config::DataConfig& data, Split split) {
    const std::size_t budget = std::size_t{1} * data.decoded_cache_mib << 20;
    const auto all = samples_of(data, Split::training) + samples_of(data, Split::validation);
    const double share = static_cast<double>(samples_of(data, split)) / static_cast<double>(all);
    return static_cast<std::size_t>(share * static_cast<double>(budget));
}

class SyntheticClimate final : public ClimateSet {
public:
    SyntheticClimate(const config::Config& config, Split split)
        : ClimateSet(climate_format(config), default_statistics(),
                     split == Split::training && config.data.climate_augmentation),
          generator_(climate_settings(config)),
          split_(split),
          samples_(samples_of(config.data, split)),
          cache_(cache_bytes(config.data, split)) {}

    std::int64_t samples() const override { return samples_; }
    std::string name(std::uint32_t sample) const override {
        return fmt::format("climate/{}/{:08}",
                           split_ == Split::training ? "training" : "validation", sample);
    }
    std::vector<Box> boxes(std::uint32_t sample) const override {
        return generator_.boxes(split_, sample);
    }

private:
    std::string write_fields(std::uint32_t sample, std::span<std::byte> fields) const override {
        const auto made = cache_.get(sample, [&] { return make(sample); });
        std::ranges::copy(*made, fields.begin());
        return "";
    }

    std::vector<std::byte> make(std::uint32_t sample) const {
        std::vector<float> numbers(generator_.elements());
        std::vector<Box> boxes;
        generator_.sample(split_, sample, FieldLayout::channels_last, numbers, boxes);
        normalize(numbers, statistics());
        std::vector<std::byte> fields(format().pixel_bytes());
        convert_from_fp32(numbers, format().dtype, fields);
        return fields;
    }

    ClimateGenerator generator_;
    Split split_;
    std::int64_t samples_;
    mutable SampleCache<std::vector<std::byte>> cache_;
};

}  // namespace

ClimateSettings climate_settings(const config::Config& config) {
    ClimateSettings settings;
    settings.height = config.workload.image_size;
    settings.width = config::image_width(config);
    settings.seed = config.run.seed;
    return settings;
}

SampleSets make_synthetic_climate(const config::Config& config) {
    return {std::make_shared<SyntheticClimate>(config, Split::training),
            std::make_shared<SyntheticClimate>(config, Split::validation),
            {}};
}

}  // namespace hpcai::data
