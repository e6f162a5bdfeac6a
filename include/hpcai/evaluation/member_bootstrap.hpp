// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/member_draws.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// How much the Top-1 accuracy of an ensemble depends on which members and which test samples
/// there happened to be: the percentile bootstrap over both (Efron and Tibshirani 1993), 1000
/// times. Members vote anew in each draw, one that is drawn twice with twice its weight. All draws
/// are functions of the seed.
namespace hpcai::evaluation {

struct MemberBootstrapSize {
    int members = 0;
    std::int64_t samples = 0;
    std::int64_t classes = 0;
    std::uint64_t seed = 0;
    std::int64_t chunk_numbers = 1 << 24;  // probabilities that are held at once
};

/// The 1000 draws of members, and what their votes say of samples that come in chunks.
class MemberBootstrap {
public:
    MemberBootstrap(const MemberBootstrapSize& size, Vote vote);

    /// Why the votes would cost too much time or memory; empty where they do not.
    std::string objection() const;
    /// Samples in a chunk, so that all members' probabilities of it have bearable size.
    std::int64_t chunk_rows() const;

    /// The next samples: `probabilities` (members, labels, classes). Samples labelled
    /// kPaddingLabel are left out.
    void add(std::span<const float> probabilities, std::span<const std::int32_t> labels);

    /// The 95 % interval over the samples so far; nothing if there is none.
    std::optional<Interval> interval() const;

private:
    bool is_right(std::span<const float> rows, std::int32_t label, std::size_t draw);

    MemberBootstrapSize size_;
    Vote vote_;
    MemberDraws draws_;
    std::vector<std::vector<std::uint8_t>> right_;  // [different draw][scored sample]
    std::vector<double> scores_;                    // (classes), of one sample
};

/// Returns the interval of an ensemble whose members are the ranks of `members`, each with its
/// `probabilities` (samples, classes). The interval is rank 0's, where `labels` (samples) are read.
/// `bootstrap` must have no objection. Collective.
std::optional<Interval> bootstrap_over_members(comm::Communicator& members,
                                               std::span<const float> probabilities,
                                               std::span<const std::int32_t> labels,
                                               MemberBootstrap bootstrap);

}  // namespace hpcai::evaluation
