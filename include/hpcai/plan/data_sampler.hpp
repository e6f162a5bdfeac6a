// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/config/config.hpp>

namespace hpcai::plan {

/// The paper's Data Sampler (docs/PAPER.md): the training samples of each base model and their
/// order. Both are functions of (seed, model, sample or draw, epoch) by Philox4x32-10, so they are
/// the same for every M, P_degree, rank, thread and machine.
///
/// The count of sample i in model m's data, for N samples:
///   poisson    Poisson(1): the inverse CDF at 64 random bits f(seed, m, i); at most 20
///   bootstrap  how many of the draws f(seed, m, j, N), j < N, are i; about 36.8 % of counts are 0
///   subsample  1 for the first max(1, round(fraction x N)) of a permutation f(seed, m), else 0
///   none       1
///
/// Draw d of a stream (purpose, m, b), where b is 0 or an epoch, has 64 bits: words 0 and 1 of one
/// Philox block, low word first, or words 2 and 3 if d is odd. The block's counter is (purpose x
/// 2^24, m, b, d / 2), its key the seed. A draw u in [0, 2^64) selects index floor(u * n / 2^64) of
/// n. Counts use the stream (bootstrap, m, 0), the order of an epoch uses (shuffle, m, epoch).
/// Permutations are Fisher-Yates shuffles from the front. RandomPurpose defines the purposes'
/// numbers.
///
/// Seed 1, model 0, poisson, eight samples:
///
///   sample        0  1  2  3  4  5  6  7
///   counts        0  0  1  2  1  0  1  1       in_bag_size 6; out of bag: 0, 1 and 5
///   expanded      2  3  3  4  6  7
///   epoch_order   3  6  3  4  7  2             of epoch 0; each epoch has its own order
///
/// The order is the model's global sequence. With batch_size 4, step 0 trains on 3 6 3 4; with
/// P_degree 2, group rank 0 takes 3 6 and group rank 1 takes 3 4.
///
/// Calls take time proportional to N at most (epoch_order of 1.28 million samples: well below a
/// second) and are thread-safe. Results are not cached.
class DataSampler {
public:
    /// Throws Error(data) for no samples or more than 2^31, and Error(usage) if the sampler is
    /// subsample and subsample_fraction is not in (0, 1].
    DataSampler(const config::BaggingConfig& bagging, std::uint64_t seed, std::uint32_t samples);

    std::uint32_t samples() const { return samples_; }

    /// Returns how often each sample is in the data of `model`.
    std::vector<std::uint16_t> counts(std::uint32_t model) const;

    /// Sum of the counts: samples of one epoch. With `poisson` it varies around N and may be 0 for
    /// a very small N.
    std::uint64_t in_bag_size(std::uint32_t model) const;

    /// Returns 1 for each sample that is not in the data of `model`, else 0.
    std::vector<std::uint8_t> out_of_bag(std::uint32_t model) const;

    /// Returns the samples of one epoch (from 0) in training order, each as often as its count.
    std::vector<std::uint32_t> epoch_order(std::uint32_t model, std::uint32_t epoch) const;

private:
    config::Sampler sampler_;
    std::uint64_t seed_;
    std::uint32_t samples_;
    std::uint32_t subsample_size_ = 0;
};

}  // namespace hpcai::plan
