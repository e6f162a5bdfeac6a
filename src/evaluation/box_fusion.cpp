// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <tuple>

#include <hpcai/evaluation/box_fusion.hpp>

namespace hpcai::evaluation {
namespace {

struct Candidate {
    std::int32_t category;
    double weighted_score;
    Box box;
};

/// The candidates of one category, best first.
using Candidates = std::span<const Candidate>;

struct Cluster {
    double score_sum = 0;
    double boxes = 0;
    // Sums of the coordinates of the boxes, each times the weighted score of its box.
    double left = 0;
    double top = 0;
    double right = 0;
    double bottom = 0;

    void add(const Candidate& candidate) {
        const Box& box = candidate.box;
        const double score = candidate.weighted_score;
        score_sum += score;
        boxes += 1;
        left += score * box.x;
        top += score * box.y;
        right += score * (box.x + box.width);
        bottom += score * (box.y + box.height);
    }

    Box fused() const {
        return box_from_corners(left / score_sum, top / score_sum, right / score_sum,
                                bottom / score_sum);
    }
};

/// Returns the index of the box with the highest IoU above `threshold` with `box`; ties: the first.
std::optional<std::size_t> best_match(const std::vector<Box>& boxes, const Box& box,
                                      double threshold) {
    std::optional<std::size_t> best;
    for (std::size_t index = 0; index < boxes.size(); ++index) {
        const double overlap = intersection_over_union(boxes[index], box);
        if (overlap <= threshold) continue;
        threshold = overlap;
        best = index;
    }
    return best;
}

std::vector<Candidate> fuse(Candidates candidates, std::span<const double> weights,
                            double overlap) {
    std::vector<Cluster> clusters;
    std::vector<Box> fused;
    for (const Candidate& candidate : candidates) {
        const auto found = best_match(fused, candidate.box, overlap);
        const std::size_t index = found.value_or(clusters.size());
        if (!found) {
            clusters.emplace_back();
            fused.push_back(candidate.box);
        }
        clusters[index].add(candidate);
        if (found) fused[index] = clusters[index].fused();
    }
    const double models = static_cast<double>(weights.size());
    const double weight_sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    std::vector<Candidate> result;
    for (std::size_t index = 0; index < clusters.size(); ++index) {
        const Cluster& cluster = clusters[index];
        const double mean = cluster.score_sum / cluster.boxes;
        result.push_back({candidates.front().category,
                          mean * std::min(models, cluster.boxes) / weight_sum, fused[index]});
    }
    return result;
}

std::vector<Candidate> suppress(Candidates candidates, double overlap) {
    std::vector<Candidate> kept;
    std::vector<Box> boxes;
    for (const Candidate& candidate : candidates) {
        if (best_match(boxes, candidate.box, overlap)) continue;
        kept.push_back(candidate);
        boxes.push_back(candidate.box);
    }
    return kept;
}

/// Returns the candidates by category, best first, ties in input order.
std::vector<Candidate> sorted_candidates(std::span<const MemberDetection> pooled,
                                         std::span<const double> weights,
                                         const FusionOptions& options) {
    const bool weighted = options.method == FusionMethod::weighted_fusion;
    std::vector<Candidate> candidates;
    for (const auto& [member, detection] : pooled) {
        const bool is_used = is_valid(detection) && area(detection.box) > 0 &&
                             detection.score > 0 && detection.score >= options.min_score;
        if (!is_used) continue;
        const double weight = weighted ? weights[member] : 1;
        candidates.push_back({detection.category, weight * detection.score, detection.box});
    }
    std::ranges::stable_sort(candidates, std::less<>(), [](const Candidate& candidate) {
        return std::tuple(candidate.category, -candidate.weighted_score);
    });
    return candidates;
}

}  // namespace

std::vector<Detection> fuse_image(std::span<const MemberDetection> pooled,
                                  std::span<const double> weights, const FusionOptions& options) {
    const std::vector<Candidate> candidates = sorted_candidates(pooled, weights, options);
    std::vector<Detection> result;
    for (auto first = candidates.begin(); first != candidates.end();) {
        const auto end = std::find_if(first, candidates.end(), [&](const Candidate& candidate) {
            return candidate.category != first->category;
        });
        const Candidates category(first, end);
        const std::vector<Candidate> merged = options.method == FusionMethod::weighted_fusion
                                                  ? fuse(category, weights, options.overlap)
                                                  : suppress(category, options.overlap);
        for (const Candidate& candidate : merged) {
            result.push_back({pooled.front().detection.image, candidate.category,
                              candidate.weighted_score, candidate.box});
        }
        first = end;
    }
    std::ranges::stable_sort(result, std::greater<>(), &Detection::score);
    if (static_cast<std::int64_t>(result.size()) > options.limit) {
        result.resize(static_cast<std::size_t>(options.limit));
    }
    return result;
}

}  // namespace hpcai::evaluation
