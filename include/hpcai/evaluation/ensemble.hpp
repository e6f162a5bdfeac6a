// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// The ensemble's prediction from its members', one member a rank of `members` (the leaders of the
/// groups that finished). Collective: every rank calls with the same sizes, which is checked first
/// (Error(internal) on all ranks otherwise). Members are summed in fp32 by reductions over
/// `chunk_rows` samples and then divided, so no rank holds more than a chunk besides its own
/// predictions and rank 0's result, whatever the number of members. The order of the sum is the
/// transport's: between orders a mean of M probabilities differs by at most M * 2^-23.
namespace hpcai::evaluation {

inline constexpr std::int64_t kVoteChunkRows = 4096;

/// Soft vote: the mean of the members' `probabilities` (samples, classes). At rank 0 (samples,
/// classes), elsewhere empty. One member's NaN makes the sample's mean NaN, which counts as wrong.
std::vector<float> ensemble_soft_vote(comm::Communicator& members,
                                      std::span<const float> probabilities, std::int64_t classes,
                                      std::int64_t chunk_rows = kVoteChunkRows);

/// Majority vote: for each class the share of the members that predict it, exact up to 2^24
/// members. At rank 0 (samples, classes), elsewhere empty. A member votes for the class of its
/// highest probability, the lowest of equals, and for none when it has a NaN; a sample without a
/// vote is all NaN. Between classes of equal share the lower wins in top_k and predicted_class.
std::vector<float> ensemble_majority(comm::Communicator& members,
                                     std::span<const float> probabilities, std::int64_t classes,
                                     std::int64_t chunk_rows = kVoteChunkRows);

/// One member's predictions on the training samples that it did not train on.
struct OutOfBagPredictions {
    std::span<const std::uint8_t> out_of_bag;  // (samples) 1: not in this member's bootstrap
    std::span<const float> probabilities;      // (ones of out_of_bag, classes), in sample order
    std::int64_t classes = 0;
};

struct OutOfBagQuality {
    TopK counts;               // over the covered samples
    std::int64_t samples = 0;  // in the data set
    std::int64_t covered = 0;  // out of the bag of at least one member
    bool operator==(const OutOfBagQuality&) const = default;
};

/// Out-of-bag vote (L. Breiman, Machine Learning 24 (1996) 123-140): a sample's prediction is the
/// mean over the members that did not train on it; samples in every bag are not counted. `labels`
/// (samples) are read at rank 0 and may be empty elsewhere. The result is rank 0's, all zero
/// elsewhere. Rank 0 holds one chunk.
OutOfBagQuality out_of_bag_vote(comm::Communicator& members, const OutOfBagPredictions& mine,
                                std::span<const std::int32_t> labels,
                                std::int64_t chunk_rows = kVoteChunkRows);

}  // namespace hpcai::evaluation
