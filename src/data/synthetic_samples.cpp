// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {
namespace {

constexpr int kCells = 8;               // per side of a pattern
constexpr std::uint32_t kPatterns = 2;  // value in the stream's counter, in place of a Split

class SyntheticSamples : public SampleSet {
public:
    SyntheticSamples(const config::Config& config, Split split)
        : seed_(config.run.seed),
          split_(split),
          samples_(split == Split::training ? config.data.synthetic_samples
                                            : config.data.synthetic_validation_samples),
          classes_(config.workload.classes),
          format_{config.workload.image_size, config.workload.image_size, config.workload.channels},
          flip_probability_(config.data.flip_probability) {
        const std::size_t cells = kCells * kCells * format_.channels;
        patterns_.resize(cells * classes_);
        for (int label = 0; label < classes_; ++label) {
            CounterStream random(seed_, RandomPurpose::synthetic_data, kPatterns,
                                 static_cast<std::uint32_t>(label));
            for (std::size_t i = 0; i < cells; ++i) {
                patterns_[label * cells + i] = static_cast<std::uint8_t>(64 + random.below(128));
            }
        }
    }

    std::int64_t samples() const override { return samples_; }
    int classes() const override { return classes_; }
    const SampleFormat& format() const override { return format_; }
    std::int32_t label(std::uint32_t sample) const override {
        return static_cast<std::int32_t>(sample) % classes_;
    }
    std::string name(std::uint32_t sample) const override {
        return fmt::format("synthetic/{}/{:08}",
                           split_ == Split::training ? "training" : "validation", sample);
    }

    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& out) const override {
        const bool mirrored = random.uniform() < flip_probability_;
        draw(sample, mirrored, out.pixels);
        return "";
    }
    std::string evaluation_sample(std::uint32_t sample, const SampleView& out) const override {
        draw(sample, false, out.pixels);
        return "";
    }

private:
    void draw(std::uint32_t sample, bool mirrored, std::span<std::byte> pixels) const {
        CounterStream random(seed_, RandomPurpose::synthetic_data,
                             static_cast<std::uint32_t>(split_), sample);
        const std::int64_t width = format_.width;
        const std::int64_t height = format_.height;
        const std::int64_t channels = format_.channels;
        const std::int64_t shift_x = random.below(static_cast<std::uint32_t>(width));
        const std::int64_t shift_y = random.below(static_cast<std::uint32_t>(height));
        const std::uint8_t* const pattern =
            patterns_.data() + label(sample) * kCells * kCells * channels;
        std::byte* out = pixels.data();
        std::uint32_t noise = 0;
        std::uint32_t noise_bytes = 0;
        for (std::int64_t y = 0; y < height; ++y) {
            const std::int64_t cell_y = (y + shift_y) % height * kCells / height;
            for (std::int64_t column = 0; column < width; ++column) {
                const std::int64_t x = mirrored ? width - 1 - column : column;
                const std::int64_t cell_x = (x + shift_x) % width * kCells / width;
                const std::uint8_t* cell = pattern + (cell_y * kCells + cell_x) * channels;
                for (std::int64_t c = 0; c < channels; ++c) {
                    if (noise_bytes == 0) {
                        noise = random.next_u32();
                        noise_bytes = 4;
                    }
                    // The sum of [64, 191] and [-64, 63] fits in a byte.
                    *out++ = static_cast<std::byte>(cell[c] + (noise & 127U) - 64U);
                    noise >>= 8;
                    --noise_bytes;
                }
            }
        }
    }

    std::uint64_t seed_;
    Split split_;
    std::int64_t samples_;
    int classes_;
    SampleFormat format_;
    double flip_probability_;
    std::vector<std::uint8_t> patterns_;  // (classes, kCells, kCells, channels)
};

}  // namespace

std::shared_ptr<const SampleSet> make_synthetic_samples(const config::Config& config, Split split) {
    return std::make_shared<SyntheticSamples>(config, split);
}

}  // namespace hpcai::data
