// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <utility>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/evaluation/statistics.hpp>

namespace hpcai::evaluation {

constexpr double kMaxAdditions = 2e10;  // of probabilities; they take about ten seconds

// Indices of the random streams of one replicate.
constexpr std::uint32_t kMemberStream = 1, kSampleStream = 2;

CounterStream MemberDraws::sample_stream(std::size_t replicate) const {
    return {seed, RandomPurpose::confidence, static_cast<std::uint32_t>(replicate), kSampleStream};
}

MemberDraws draw_members(int members, std::uint64_t seed) {
    MemberDraws draws;
    draws.seed = seed;
    std::map<std::vector<float>, std::size_t> known;
    for (std::uint32_t replicate = 0; replicate < kReplicates; ++replicate) {
        CounterStream stream(seed, RandomPurpose::confidence, replicate, kMemberStream);
        std::vector<float> weights(static_cast<std::size_t>(members));
        for (int draw = 0; draw < members; ++draw) {
            weights[stream.below(static_cast<std::uint32_t>(members))] += 1;
        }
        const auto [entry, is_new] = known.try_emplace(weights, draws.weights.size());
        if (is_new) draws.weights.push_back(std::move(weights));
        draws.draw_index.push_back(entry->second);
    }
    return draws;
}

MemberBootstrap::MemberBootstrap(const MemberBootstrapSize& size, Vote vote)
    : size_(size),
      vote_(vote),
      draws_(draw_members(size.members, size.seed)),
      hits_(draws_.weights.size()),
      scores_(static_cast<std::size_t>(size.classes)) {}

std::string MemberBootstrap::reason_to_skip() const {
    const double values = static_cast<double>(size_.members) * static_cast<double>(size_.classes);
    const double additions =
        static_cast<double>(size_.samples) * (values * static_cast<double>(draws_.weights.size()) +
                                              static_cast<double>(draws_.draw_index.size()));
    if (values <= static_cast<double>(size_.max_chunk_values) && additions <= kMaxAdditions)
        return "";
    return fmt::format("{} votes of {} members on {} samples of {} classes are too many",
                       draws_.weights.size(), size_.members, size_.samples, size_.classes);
}

std::int64_t MemberBootstrap::chunk_rows() const {
    const std::int64_t row = std::max<std::int64_t>(1, size_.members * size_.classes);
    return std::clamp<std::int64_t>(size_.max_chunk_values / row, 1,
                                    std::max<std::int64_t>(1, size_.samples));
}

/// Returns whether the vote of a draw on one sample is `label`; `rows` are (members, classes).
bool MemberBootstrap::is_hit(std::span<const float> rows, std::int32_t label, std::size_t draw) {
    const std::size_t classes = scores_.size();
    std::ranges::fill(scores_, 0.0);
    for (std::size_t member = 0; member < draws_.weights[draw].size(); ++member) {
        const auto weight = static_cast<double>(draws_.weights[draw][member]);
        if (weight == 0) continue;
        const float* row = rows.data() + member * classes;
        for (std::size_t index = 0; index < classes; ++index) {
            scores_[index] += weight * static_cast<double>(row[index]);
        }
    }
    const double score = scores_[label];
    if (vote_ == Vote::majority && score == 0) return false;  // no member voted for `label`
    for (std::size_t index = 0; index < classes; ++index) {
        const bool is_lower = index < static_cast<std::size_t>(label) ? scores_[index] < score
                                                                      : scores_[index] <= score;
        if (!is_lower) return false;  // also for NaN
    }
    return true;
}

void MemberBootstrap::add(std::span<const float> probabilities,
                          std::span<const std::int32_t> labels) {
    const std::size_t classes = scores_.size();
    const auto members = static_cast<std::size_t>(size_.members);
    ensure(probabilities.size() == members * labels.size() * classes,
           "bootstrap: {} probabilities do not match {} members, {} samples, {} classes",
           probabilities.size(), members, labels.size(), classes);
    std::vector<float> rows(members * classes);
    for (std::size_t sample = 0; sample < labels.size(); ++sample) {
        const std::int32_t label = labels[sample];
        if (label == kPaddingLabel) continue;
        require(label >= 0 && label < size_.classes, ExitCode::data,
                "a sample has the label {}, expected 0 to {}", label, size_.classes - 1);
        for (std::size_t member = 0; member < members; ++member) {
            const auto source =
                probabilities.subspan((member * labels.size() + sample) * classes, classes);
            const auto target = std::span(rows).subspan(member * classes, classes);
            cast_votes(vote_, source, target, classes);
        }
        for (std::size_t draw = 0; draw < hits_.size(); ++draw) {
            hits_[draw].push_back(is_hit(rows, label, draw) ? 1 : 0);
        }
    }
}

std::optional<Interval> MemberBootstrap::interval() const {
    if (hits_.empty() || hits_.front().empty()) return std::nullopt;
    const auto samples = static_cast<std::uint32_t>(hits_.front().size());
    std::vector<double> accuracies;
    for (std::size_t replicate = 0; replicate < draws_.draw_index.size(); ++replicate) {
        CounterStream stream = draws_.sample_stream(replicate);
        const std::vector<std::uint8_t>& hits = hits_[draws_.draw_index[replicate]];
        std::int64_t correct = 0;
        for (std::uint32_t draw = 0; draw < samples; ++draw) correct += hits[stream.below(samples)];
        accuracies.push_back(static_cast<double>(correct) / static_cast<double>(samples));
    }
    return interval_of_draws(std::move(accuracies));
}

std::optional<Interval> bootstrap_over_members(comm::Communicator& members,
                                               std::span<const float> probabilities,
                                               std::span<const std::int32_t> labels,
                                               MemberBootstrap bootstrap) {
    const auto rows = static_cast<std::size_t>(bootstrap.chunk_rows());
    const std::size_t samples = labels.size();
    const std::size_t width = samples == 0 ? 0 : probabilities.size() / samples;
    for (std::size_t first = 0; first < samples; first += rows) {
        const std::size_t count = std::min(rows, samples - first);
        const auto local = probabilities.subspan(first * width, count * width);
        const auto all = comm::gather(members, std::vector<float>(local.begin(), local.end()));
        if (members.rank() == 0) bootstrap.add(all, labels.subspan(first, count));
    }
    return bootstrap.interval();
}

}  // namespace hpcai::evaluation
