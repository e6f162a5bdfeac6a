// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include <hpcai/data/sample_set.hpp>

namespace hpcai::data {

namespace {

constexpr int kCells = 8;               // of a pattern, a side
constexpr std::uint32_t kPatterns = 2;  // third field of the stream's name, after the two splits

class SyntheticSamples : public SampleSet {
public:
    SyntheticSamples(const config::Config& config, Split split)
        : seed_(config.run.seed),
          split_(split),
          samples_(split == Split::training ? config.data.synthetic_samples
                                            : config.data.synthetic_validation_samples),
          classes_(config.workload.classes),
          image_size_(config.workload.image_size),
          channels_(config.workload.channels),
          flip_probability_(config.data.flip_probability) {
        const auto cells = static_cast<std::size_t>(kCells * kCells * channels_);
        patterns_.resize(cells * static_cast<std::size_t>(classes_));
        for (int label = 0; label < classes_; ++label) {
            CounterStream random(seed_, RandomPurpose::synthetic_data, kPatterns,
                                 static_cast<std::uint32_t>(label));
            for (std::size_t i = 0; i < cells; ++i) {
                patterns_[static_cast<std::size_t>(label) * cells + i] =
                    static_cast<std::uint8_t>(64 + random.below(128));
            }
        }
    }

    std::int64_t samples() const override { return samples_; }
    int classes() const override { return classes_; }
    int image_size() const override { return image_size_; }
    int channels() const override { return channels_; }
    std::int32_t label(std::uint32_t sample) const override {
        return static_cast<std::int32_t>(sample) % classes_;
    }
    std::string name(std::uint32_t sample) const override {
        return fmt::format("synthetic/{}/{:08}",
                           split_ == Split::training ? "training" : "validation", sample);
    }

    std::string training_pixels(std::uint32_t sample, CounterStream random,
                                std::span<std::uint8_t> pixels) const override {
        const bool mirrored = random.uniform() < flip_probability_;
        draw(sample, mirrored, pixels);
        return "";
    }
    std::string evaluation_pixels(std::uint32_t sample,
                                  std::span<std::uint8_t> pixels) const override {
        draw(sample, false, pixels);
        return "";
    }

private:
    void draw(std::uint32_t sample, bool mirrored, std::span<std::uint8_t> pixels) const {
        CounterStream random(seed_, RandomPurpose::synthetic_data,
                             static_cast<std::uint32_t>(split_), sample);
        const auto side = static_cast<std::uint32_t>(image_size_);
        const int shift_x = static_cast<int>(random.below(side));
        const int shift_y = static_cast<int>(random.below(side));
        const std::uint8_t* const pattern =
            patterns_.data() + label(sample) * kCells * kCells * channels_;
        std::uint8_t* out = pixels.data();
        std::uint32_t noise = 0;
        std::uint32_t noise_bytes = 0;
        for (int y = 0; y < image_size_; ++y) {
            const int cell_y = (y + shift_y) % image_size_ * kCells / image_size_;
            for (int column = 0; column < image_size_; ++column) {
                const int x = mirrored ? image_size_ - 1 - column : column;
                const int cell_x = (x + shift_x) % image_size_ * kCells / image_size_;
                const std::uint8_t* cell = pattern + (cell_y * kCells + cell_x) * channels_;
                for (int c = 0; c < channels_; ++c) {
                    if (noise_bytes == 0) {
                        noise = random.next_u32();
                        noise_bytes = 4;
                    }
                    // 64 .. 191 and up to 63 more or 64 less stays within a byte.
                    *out++ = static_cast<std::uint8_t>(cell[c] + (noise & 127U) - 64U);
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
    int image_size_;
    int channels_;
    double flip_probability_;
    std::vector<std::uint8_t> patterns_;  // (classes, kCells, kCells, channels)
};

}  // namespace

std::shared_ptr<const SampleSet> make_synthetic_samples(const config::Config& config, Split split) {
    return std::make_shared<SyntheticSamples>(config, split);
}

}  // namespace hpcai::data
