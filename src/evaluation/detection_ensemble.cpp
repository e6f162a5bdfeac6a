// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>

#include "matching.hpp"

namespace hpcai::evaluation {
namespace {

constexpr int kExchangeTag = 3;

static_assert(std::is_trivially_copyable_v<MemberDetection>);

/// Values that must be equal on all ranks.
struct Terms {
    std::int64_t images;
    std::int64_t chunk_images;
    std::int64_t limit;
    FusionMethod method;
    double overlap;
    double lowest_score;
    bool operator==(const Terms&) const = default;
};

struct RankTerms {
    Terms terms;
    std::int64_t is_legal;
    std::int64_t models;
};

bool is_legal(const Member& member, std::int64_t images) {
    return std::ranges::is_sorted(member.detections, {}, &Detection::image) &&
           (member.detections.empty() ||
            (member.detections.front().image >= 0 && member.detections.back().image < images)) &&
           member.weight > 0;
}

/// Checks that all ranks agree and returns each rank's number of models.
std::vector<std::int64_t> agree(comm::Communicator& ranks, const RankTerms& mine) {
    const std::vector<RankTerms> all = comm::all_gather(ranks, mine);
    std::vector<std::int64_t> models;
    std::int64_t sum = 0;
    for (const auto& [terms, legal, rank_models] : all) {
        ensure(legal != 0 && terms == mine.terms,
               "the members' detections do not match; here {} images in rounds of {}, {} "
               "models",
               mine.terms.images, mine.terms.chunk_images, mine.models);
        models.push_back(rank_models);
        sum += rank_models;
    }
    ensure(sum > 0, "a fusion of no model's detections");
    return models;
}

/// Sends `sent[r]` to rank r and returns what each rank sent. In step s, ranks a and b exchange if
/// (a + b) mod size is s. The lower rank sends first, so no ranks wait for each other in a circle.
std::vector<std::vector<MemberDetection>> exchange(comm::Communicator& ranks,
                                                   std::vector<std::vector<MemberDetection>> sent) {
    const std::size_t size = sent.size();
    std::vector<std::size_t> counts;  // records from this rank to each rank
    for (const auto& records : sent) counts.push_back(records.size());
    std::vector<std::size_t> all_counts(size * size);  // [from][to]
    ranks.all_gather(std::as_bytes(std::span(counts)),
                     std::as_writable_bytes(std::span(all_counts)));
    const auto me = static_cast<std::size_t>(ranks.rank());
    std::vector<std::vector<MemberDetection>> came(size);
    came[me] = std::move(sent[me]);
    for (std::size_t step = 0; step < size; ++step) {
        const std::size_t other = (step + size - me) % size;
        if (other == me) continue;
        came[other].resize(all_counts[other * size + me]);
        const auto give = [&] {
            ranks.send(std::as_bytes(std::span(sent[other])), static_cast<int>(other),
                       kExchangeTag);
        };
        if (me < other) give();
        ranks.receive(std::as_writable_bytes(std::span(came[other])), static_cast<int>(other),
                      kExchangeTag);
        if (me > other) give();
    }
    return came;
}

/// The models of one rank, whose detections are taken image by image.
class Deck {
public:
    Deck(std::span<const Member> members, std::int64_t first_member)
        : members_(members), first_member_(first_member), next_(members.size()) {}

    /// Returns the detections of images below `end` that were not taken before.
    std::vector<MemberDetection> take(std::int64_t end) {
        std::vector<MemberDetection> taken;
        for (std::size_t index = 0; index < members_.size(); ++index) {
            const auto& detections = members_[index].detections;
            const auto member =
                static_cast<std::int32_t>(first_member_) + static_cast<std::int32_t>(index);
            for (std::size_t& at = next_[index];
                 at < detections.size() && detections[at].image < end; ++at) {
                taken.push_back({member, detections[at]});
            }
        }
        return taken;
    }

private:
    std::span<const Member> members_;
    std::int64_t first_member_;
    std::vector<std::size_t> next_;  // [member], the first detection that was not taken
};

/// Fuses the detections of all models, image by image.
std::vector<Detection> fuse_images(const std::vector<std::vector<MemberDetection>>& came,
                                   std::span<const double> weights, const FusionOptions& options) {
    std::vector<MemberDetection> pooled;
    for (const auto& records : came) pooled.insert(pooled.end(), records.begin(), records.end());
    const auto image_of = [](const MemberDetection& one) { return one.detection.image; };
    std::ranges::stable_sort(pooled, {}, image_of);  // keeps the order of members
    std::vector<Detection> result;
    for (auto first = pooled.begin(); first != pooled.end();) {
        const auto end =
            std::ranges::upper_bound(first, pooled.end(), image_of(*first), {}, image_of);
        const std::vector<Detection> fused = fuse_image({first, end}, weights, options);
        result.insert(result.end(), fused.begin(), fused.end());
        first = end;
    }
    return result;
}

constexpr double kMaxFusedImages = 1e5;  // of all draws: about ten seconds

/// Returns the members of a draw with their weights.
std::vector<Member> drawn(const DrawnMembers& members, const std::vector<float>& weights) {
    std::vector<Member> found;
    for (std::size_t index = 0; index < members.mine.size(); ++index) {
        const float weight = weights.at(static_cast<std::size_t>(members.first) + index);
        if (weight == 0) continue;
        found.push_back({members.mine[index].detections, static_cast<double>(weight)});
    }
    return found;
}

}  // namespace

std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> mine,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images) {
    const bool legal =
        images >= 0 && chunk_images > 0 && options.limit > 0 &&
        std::ranges::all_of(mine, [&](const Member& one) { return is_legal(one, images); });
    const std::vector<std::int64_t> models =
        agree(ranks, {{images, chunk_images, options.limit, options.method, options.overlap,
                       options.lowest_score},
                      legal,
                      std::ssize(mine)});
    std::vector<double> my_weights;
    for (const Member& member : mine) my_weights.push_back(member.weight);
    const std::vector<double> weights =
        comm::broadcast(ranks, comm::gather(ranks, std::move(my_weights)));
    std::int64_t first_member = 0;
    for (int rank = 0; rank < ranks.rank(); ++rank) {
        first_member += models[rank];
    }
    Deck deck(mine, first_member);
    std::vector<Detection> result;
    for (std::int64_t start = 0; start < images;) {
        std::vector<std::vector<MemberDetection>> sent;
        for (int rank = 0; rank < ranks.size(); ++rank) {
            start += std::min(chunk_images, images - start);
            sent.push_back(deck.take(start));
        }
        const std::vector<Detection> fused =
            comm::gather(ranks, fuse_images(exchange(ranks, std::move(sent)), weights, options));
        result.insert(result.end(), fused.begin(), fused.end());
    }
    return result;
}

std::string objection_to_draws(const MemberDraws& draws, std::int64_t images) {
    const auto votes = static_cast<double>(draws.weights.size());
    if (votes * static_cast<double>(images) <= kMaxFusedImages) return "";
    return fmt::format("{} fusions of the detections in {} images are too many",
                       draws.weights.size(), images);
}

std::optional<Interval> bootstrap_detections(comm::Communicator& ranks, const DrawnMembers& members,
                                             const DetectionTruth& truth, double threshold,
                                             const FusionOptions& options) {
    const MemberDraws& draws = members.draws;
    std::vector<std::vector<CategoryMatches>> found;  // [distinct draw]
    for (const std::vector<float>& weights : draws.weights) {
        const std::vector<Detection> fused =
            fuse_detections(ranks, drawn(members, weights), truth.images, options);
        if (ranks.rank() == 0) found.push_back(match(truth, fused, threshold));
    }
    if (ranks.rank() != 0) return std::nullopt;
    std::vector<double> means;
    for (std::size_t replicate = 0; replicate < draws.of_replicate.size(); ++replicate) {
        const auto mean = mean_precision_of_draw(found[draws.of_replicate[replicate]], truth.images,
                                                 draws.samples_of(replicate));
        if (mean) means.push_back(*mean);
    }
    return interval_of_draws(std::move(means));
}

}  // namespace hpcai::evaluation
