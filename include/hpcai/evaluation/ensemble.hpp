// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Combines the predictions of an ensemble's members. The ranks of `members` are the leaders of the
/// completed groups, each with the predictions of one member. Collective: every rank must pass the
/// same sizes. If they differ, all ranks throw Error(internal) before any reduction. Each reduction
/// sums the predictions of `chunk_rows` samples in fp32. A rank thus holds only its own
/// predictions, one chunk and, at rank 0, the result. The order of the sum depends on the
/// transport; for different orders, means of M probabilities differ by at most 2^-23 * M.
namespace hpcai::evaluation {

inline constexpr std::int64_t kVoteChunkRows = 4096;

/// Returns the ensemble's prediction (samples, classes) at rank 0, elsewhere an empty vector.
///
/// Soft vote: the mean of the members' `probabilities` (samples, classes). A NaN of one member
/// makes the sample's mean NaN, which counts as a wrong prediction.
///
/// Majority vote: for each class the fraction of the members that predict it. Exact up to 2^24
/// members. A member votes for the class of its highest probability, in a tie the lowest class, and
/// not at all if a probability is NaN. The fractions of a sample without votes are NaN. In top_k
/// and predicted_class, the lower of two classes with equal fractions wins.
std::vector<float> ensemble_vote(comm::Communicator& members, Vote vote,
                                 std::span<const float> probabilities, std::int64_t classes,
                                 std::int64_t chunk_rows = kVoteChunkRows);

/// One member's predictions for training samples that are not in its bootstrap sample.
struct OutOfBagPredictions {
    std::span<const std::uint8_t> out_of_bag;  // (samples), 1: the member did not train on it
    // (out-of-bag samples, classes), in sample order
    std::span<const float> probabilities;
    std::int64_t classes = 0;
};

struct OutOfBagQuality {
    TopK counts;               // over the covered samples
    std::int64_t covered = 0;  // samples that are out of bag for at least one member
    bool operator==(const OutOfBagQuality&) const = default;
};

/// Out-of-bag vote (L. Breiman, Machine Learning 24 (1996) 123-140): a sample's prediction is the
/// mean over the members that did not train on it. Samples that all members trained on are not
/// counted. Rank 0 reads `labels` (samples) and returns the result. On other ranks, `labels` may be
/// empty and the result is all zero.
OutOfBagQuality out_of_bag_vote(comm::Communicator& members, const OutOfBagPredictions& local,
                                std::span<const std::int32_t> labels,
                                std::int64_t chunk_rows = kVoteChunkRows);

}  // namespace hpcai::evaluation
