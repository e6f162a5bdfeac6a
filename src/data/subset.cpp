// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/data/subset.hpp>

namespace hpcai::data {
namespace {

class Subset final : public SampleSet {
public:
    Subset(std::shared_ptr<const SampleSet> samples, std::vector<std::uint32_t> chosen)
        : samples_(std::move(samples)), chosen_(std::move(chosen)) {
        for (const std::uint32_t sample : chosen_) {
            ensure(sample < samples_->samples(), "sample {} of {}", sample, samples_->samples());
        }
    }

    std::int64_t samples() const override { return static_cast<std::int64_t>(chosen_.size()); }
    int classes() const override { return samples_->classes(); }
    int image_size() const override { return samples_->image_size(); }
    int channels() const override { return samples_->channels(); }
    std::int32_t label(std::uint32_t sample) const override {
        return samples_->label(chosen_[sample]);
    }
    std::string name(std::uint32_t sample) const override {
        return samples_->name(chosen_[sample]);
    }
    std::string location(std::uint32_t sample) const override {
        return samples_->location(chosen_[sample]);
    }
    std::string training_pixels(std::uint32_t sample, CounterStream random,
                                std::span<std::uint8_t> pixels) const override {
        return samples_->training_pixels(chosen_[sample], std::move(random), pixels);
    }
    DecodedImage whole_picture(std::uint32_t sample) const override {
        return samples_->whole_picture(chosen_[sample]);
    }
    TrainingView training_view(ImageSize size, CounterStream random) const override {
        return samples_->training_view(size, std::move(random));
    }
    std::string evaluation_pixels(std::uint32_t sample,
                                  std::span<std::uint8_t> pixels) const override {
        return samples_->evaluation_pixels(chosen_[sample], pixels);
    }

private:
    std::shared_ptr<const SampleSet> samples_;
    std::vector<std::uint32_t> chosen_;
};

}  // namespace

std::shared_ptr<const SampleSet> make_subset(std::shared_ptr<const SampleSet> samples,
                                             std::vector<std::uint32_t> chosen) {
    return std::make_shared<Subset>(std::move(samples), std::move(chosen));
}

}  // namespace hpcai::data
