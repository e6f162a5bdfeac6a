// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <fmt/core.h>

#include <hpcai/base/error.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>

#include "matching.hpp"

namespace hpcai::evaluation {
namespace {

constexpr double kMaxFusedImages = 1e5;  // of all draws: some ten seconds

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
    std::vector<std::vector<CategoryMatches>> found;  // [different draw]
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
