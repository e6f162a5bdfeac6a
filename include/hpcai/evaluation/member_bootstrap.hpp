// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/evaluation/ballot.hpp>
#include <hpcai/evaluation/top_k.hpp>

/// Bootstrap over members and test samples: how much the Top-1 accuracy of an ensemble depends on
/// the choice of both (percentile bootstrap, Efron and Tibshirani 1993, 1000 draws). The members of
/// each draw vote again; a member that is drawn twice votes with weight 2. All draws are functions
/// of the seed.
namespace hpcai::evaluation {

/// The members that each replicate of the bootstrap draws. Equal draws are stored once.
struct MemberDraws {
    std::vector<std::vector<float>> weights;  // [distinct draw][member]: times drawn
    std::vector<std::size_t> draw_index;      // [replicate]: index in `weights`
    std::uint64_t seed = 0;

    /// Returns the random stream that draws the test samples of a replicate.
    CounterStream sample_stream(std::size_t replicate) const;
};

/// Draws `members` members with replacement, 1000 times.
MemberDraws draw_members(int members, std::uint64_t seed);

struct MemberBootstrapSize {
    int members = 0;
    std::int64_t samples = 0;
    std::int64_t classes = 0;
    std::uint64_t seed = 0;
    std::int64_t max_chunk_values = 1 << 24;  // probabilities in a chunk, 64 MiB
};

/// Draws members and collects their votes on samples, which are added in chunks.
class MemberBootstrap {
public:
    MemberBootstrap(const MemberBootstrapSize& size, Vote vote);

    /// Returns why the votes would take too much time or memory; empty if they would not.
    std::string reason_to_skip() const;
    /// Returns the number of samples in a chunk, which limits the memory of the probabilities.
    std::int64_t chunk_rows() const;

    /// Adds the next samples: `probabilities` (members, labels.size(), classes). Samples with the
    /// label kPaddingLabel are ignored. Throws Error(data) for other labels not in [0, classes).
    void add(std::span<const float> probabilities, std::span<const std::int32_t> labels);

    /// Returns the 95 % interval of the Top-1 accuracy on the added samples; nothing without them.
    std::optional<Interval> interval() const;

private:
    bool is_hit(std::span<const float> rows, std::int32_t label, std::size_t draw);

    MemberBootstrapSize size_;
    Vote vote_;
    MemberDraws draws_;
    std::vector<std::vector<std::uint8_t>> hits_;  // [distinct draw][scored sample]
    std::vector<double> scores_;                   // (classes), of one sample
};

/// Returns interval() for the ensemble whose members are the ranks of `members`, each with its
/// `probabilities` (samples, classes). All ranks pass equally many `labels` (samples); only rank 0
/// reads them and returns the interval. bootstrap.reason_to_skip() must be empty. Collective.
std::optional<Interval> bootstrap_over_members(comm::Communicator& members,
                                               std::span<const float> probabilities,
                                               std::span<const std::int32_t> labels,
                                               MemberBootstrap bootstrap);

}  // namespace hpcai::evaluation
