// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/config/config.hpp>

namespace hpcai::plan {

/// The Data Sampler of the paper: which training samples each base model sees, and in which order.
/// No file defines it: everything is a function of (seed, model, sample or draw, epoch) through
/// Philox4x32-10, so it is the same for every M, P_degree, rank, thread and machine.
///
/// How often sample i is in model m's data, for N samples:
///   poisson    Poisson(1): inverts the distribution at 64 random bits f(seed, m, i); at most 20
///   bootstrap  how many of the N draws f(seed, m, j, N) hit i; 36.8 % of the samples stay out
///   subsample  1 for the first round(fraction x N), at least one, of a permutation f(seed, m)
///   none       1
///
/// Draw d of a stream (purpose, m, b) is 64 bits: words 0 and 1 of one Philox block, low word
/// first, or 2 and 3 where d is odd; the block's counter is (purpose x 2^24, m, b, d / 2), its key
/// the seed. A draw u chooses floor(u n / 2^64) of n. The counts take their draws from (bootstrap,
/// m, 0) and the order of an epoch from (shuffle, m, epoch), by a Fisher-Yates shuffle from the
/// front, as does the permutation of `subsample`. RandomPurpose has the numbers of the purposes.
///
/// Seed 1, model 0, poisson, eight samples:
///
///   sample        0  1  2  3  4  5  6  7
///   counts        0  0  1  2  1  0  1  1       in_bag_size 6; out of bag: 0, 1 and 5
///   expanded      2  3  3  4  6  7
///   epoch_order   3  6  3  4  7  2             of epoch 0; each epoch has another
///
/// The order is the model's global sequence: of batch_size 4, step 0 trains on 3 6 3 4, and of
/// P_degree 2, group rank 0 takes 3 6 and group rank 1 takes 3 4.
///
/// All calls take time proportional to N (epoch_order of 1.28 million samples: well below a
/// second), may run concurrently, and are cheap enough not to be cached.
class DataSampler {
public:
    /// Throws Error(data) when there is no sample or more than 2^31, Error(usage) when
    /// subsample_fraction is not in (0, 1].
    DataSampler(const config::BaggingConfig& bagging, std::uint64_t seed, std::uint32_t samples);

    std::uint32_t samples() const { return samples_; }

    /// [sample], how often it is in the data of `model`.
    std::vector<std::uint16_t> counts(std::uint32_t model) const;

    /// Sum of the counts: samples of one epoch. With `poisson` it varies around N, and a very small
    /// N may give 0.
    std::uint64_t in_bag_size(std::uint32_t model) const;

    /// [sample], 1 where `model` never sees the sample, else 0.
    std::vector<std::uint8_t> out_of_bag(std::uint32_t model) const;

    /// The samples of one epoch in training order, each as often as it counts. `epoch` from 0.
    std::vector<std::uint32_t> epoch_order(std::uint32_t model, std::uint32_t epoch) const;

private:
    config::Sampler sampler_;
    std::uint64_t seed_;
    std::uint32_t samples_;
    std::uint32_t subsample_size_ = 0;
};

}  // namespace hpcai::plan
