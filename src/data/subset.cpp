// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/data/sample_set.hpp>

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
    const SampleFormat& format() const override { return samples_->format(); }
    std::int32_t label(std::uint32_t sample) const override {
        return samples_->label(chosen_[sample]);
    }
    std::vector<Box> boxes(std::uint32_t sample) const override {
        return samples_->boxes(chosen_[sample]);
    }
    std::string class_name(std::int32_t category) const override {
        return samples_->class_name(category);
    }
    std::string name(std::uint32_t sample) const override {
        return samples_->name(chosen_[sample]);
    }
    std::string location(std::uint32_t sample) const override {
        return samples_->location(chosen_[sample]);
    }
    std::string training_sample(std::uint32_t sample, CounterStream random,
                                const SampleView& out) const override {
        return samples_->training_sample(chosen_[sample], std::move(random), out);
    }
    DecodedImage decode_full_size(std::uint32_t sample) const override {
        return samples_->decode_full_size(chosen_[sample]);
    }
    TrainingView training_view(ImageSize size, CounterStream random) const override {
        return samples_->training_view(size, std::move(random));
    }
    std::string evaluation_sample(std::uint32_t sample, const SampleView& out) const override {
        return samples_->evaluation_sample(chosen_[sample], out);
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
