// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include <hpcai/base/error.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/plan/data_sampler.hpp>

namespace hpcai::plan {
namespace {

/// Random draws of 64 bits; draw d is a function of (seed, purpose, a, b, d) alone.
class Draws {
public:
    Draws(std::uint64_t seed, RandomPurpose purpose, std::uint32_t a, std::uint32_t b)
        : seed_(seed), purpose_(purpose), a_(a), b_(b), block_(seed, purpose, a, b, 0) {}

    std::uint64_t next() {
        // A Philox block yields two draws. A new stream for each block allows 2^33 draws.
        if (drawn_ % 2 == 0) {
            block_ = CounterStream(seed_, purpose_, a_, b_, static_cast<std::uint32_t>(drawn_ / 2));
        }
        ++drawn_;
        return block_.next_u64();
    }

    /// Returns a number in [0, n): the high part of draw x n. The relative error of each
    /// probability is at most n / 2^64.
    std::uint32_t next_below(std::uint32_t n) {
        const std::uint64_t draw = next();
        const std::uint64_t low_product = (draw & 0xffffffff) * n;
        return static_cast<std::uint32_t>(((draw >> 32) * n + (low_product >> 32)) >> 32);
    }

private:
    std::uint64_t seed_;
    RandomPurpose purpose_;
    std::uint32_t a_, b_;
    CounterStream block_;
    std::uint64_t drawn_ = 0;
};

// With Sampler::poisson, an epoch may by chance be longer; its length must fit into 32 bits.
constexpr std::uint32_t kMaxSamples = std::uint32_t{1} << 31;

/// ceil(2^64 x P(k <= index)) of Poisson(1); P(k > 19) is below 2^-62.
constexpr std::array<std::uint64_t, 20> kPoissonThresholds = {
    0x5e2d58d8b3bcdf1b, 0xbc5ab1b16779be36, 0xeb715e1dc1582dc3, 0xfb23979734a252f2,
    0xff1025f59174dc3e, 0xffd90f3ba4055e1a, 0xfffa8b71fc72c914, 0xffff540c0914b3ca,
    0xffffed1f4aa8f121, 0xfffffe216e641463, 0xffffffd4d85d3184, 0xfffffffc6da262b5,
    0xffffffffba12d179, 0xfffffffffb07c64d, 0xffffffffffab8ea6, 0xfffffffffffabe23,
    0xffffffffffffb11b, 0xfffffffffffffba2, 0xffffffffffffffc6, 0xfffffffffffffffe};

std::uint16_t poisson(std::uint64_t draw) {
    std::uint16_t count = 0;
    while (count < kPoissonThresholds.size() && draw >= kPoissonThresholds[count]) ++count;
    return count;
}

/// Runs the first `count` steps of a Fisher-Yates shuffle: the first `count` of `values` become a
/// uniform random sample in uniform random order.
void shuffle_first(std::vector<std::uint32_t>& values, std::size_t count, Draws& draws) {
    for (std::size_t i = 0; i < count; ++i) {
        const auto remaining = static_cast<std::uint32_t>(values.size() - i);
        std::swap(values[i], values[i + draws.next_below(remaining)]);
    }
}

}  // namespace

DataSampler::DataSampler(const config::BaggingConfig& bagging, std::uint64_t seed,
                         std::uint32_t samples)
    : sampler_(bagging.sampler), seed_(seed), samples_(samples) {
    require(samples > 0, ExitCode::data, "there is no training sample to draw from");
    require(samples <= kMaxSamples, ExitCode::data, "{} training samples exceed the limit of {}",
            samples, kMaxSamples);
    if (sampler_ != config::Sampler::subsample) return;
    const double fraction = bagging.subsample_fraction;
    require(fraction > 0 && fraction <= 1, ExitCode::usage,
            "bagging.subsample_fraction: expected a number in (0, 1], got {}", fraction);
    subsample_size_ = std::max(1u, static_cast<std::uint32_t>(std::llround(fraction * samples)));
}

std::vector<std::uint16_t> DataSampler::counts(std::uint32_t model) const {
    std::vector<std::uint16_t> counts(samples_, 0);
    Draws draws(seed_, RandomPurpose::bootstrap, model, 0);
    switch (sampler_) {
        case config::Sampler::poisson:
            for (auto& count : counts) count = poisson(draws.next());
            break;
        case config::Sampler::bootstrap:
            for (std::uint32_t draw = 0; draw < samples_; ++draw) {
                ++counts[draws.next_below(samples_)];
            }
            break;
        case config::Sampler::subsample: {
            std::vector<std::uint32_t> order(samples_);
            std::iota(order.begin(), order.end(), 0u);
            shuffle_first(order, subsample_size_, draws);
            for (std::uint32_t i = 0; i < subsample_size_; ++i) counts[order[i]] = 1;
            break;
        }
        case config::Sampler::none:
            std::fill(counts.begin(), counts.end(), std::uint16_t{1});
            break;
    }
    return counts;
}

std::uint64_t DataSampler::in_bag_size(std::uint32_t model) const {
    if (sampler_ == config::Sampler::subsample) return subsample_size_;
    if (sampler_ != config::Sampler::poisson) return samples_;
    const auto sample_counts = counts(model);
    return std::accumulate(sample_counts.begin(), sample_counts.end(), std::uint64_t{0});
}

std::vector<std::uint8_t> DataSampler::out_of_bag(std::uint32_t model) const {
    std::vector<std::uint8_t> mask;
    mask.reserve(samples_);
    for (const auto count : counts(model)) mask.push_back(count == 0);
    return mask;
}

std::vector<std::uint32_t> DataSampler::epoch_order(std::uint32_t model,
                                                    std::uint32_t epoch) const {
    std::vector<std::uint32_t> order;
    order.reserve(samples_ + samples_ / 64);
    const auto sample_counts = counts(model);
    for (std::uint32_t sample = 0; sample < samples_; ++sample) {
        order.insert(order.end(), sample_counts[sample], sample);
    }
    Draws draws(seed_, RandomPurpose::shuffle, model, epoch);
    shuffle_first(order, order.size(), draws);
    return order;
}

}  // namespace hpcai::plan
