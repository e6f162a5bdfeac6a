// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>

#include "matching.hpp"

namespace hpcai::evaluation {
namespace {

constexpr int kExchangeTag = 3;  // comm::gather() uses tag 1

static_assert(std::is_trivially_copyable_v<MemberDetection>);

/// One rank's arguments of fuse_detections(), and its number of models.
struct RankArguments {
    std::int64_t images;
    std::int64_t chunk_images;
    FusionOptions options;
    bool is_legal;
    std::size_t models;
};

bool is_legal(const Member& member, std::int64_t images) {
    return std::ranges::is_sorted(member.detections, {}, &Detection::image) &&
           (member.detections.empty() ||
            (member.detections.front().image >= 0 && member.detections.back().image < images)) &&
           member.weight > 0;
}

/// Checks that the arguments are legal and equal on all ranks. Counts the models of lower ranks.
std::size_t count_models_before(comm::Communicator& ranks, const RankArguments& local) {
    const std::vector<RankArguments> all = comm::all_gather(ranks, local);
    std::size_t before = 0, sum = 0;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        const auto& [images, chunk_images, options, is_legal, models] = all[rank];
        ensure(is_legal && images == local.images && chunk_images == local.chunk_images &&
                   options == local.options,
               "fusion arguments are invalid or differ between ranks; this rank has {} images in "
               "rounds of {} images, and {} models",
               local.images, local.chunk_images, local.models);
        if (rank < ranks.rank()) before += models;
        sum += models;
    }
    ensure(sum > 0, "fusion: no rank has a model");
    return before;
}

/// Sends `sent[r]` to rank r and returns what each rank sent. In step s, ranks a and b exchange if
/// (a + b) mod size is s. The lower rank sends first, which avoids deadlock.
std::vector<std::vector<MemberDetection>> exchange(comm::Communicator& ranks,
                                                   std::vector<std::vector<MemberDetection>> sent) {
    const std::size_t size = sent.size();
    std::vector<std::size_t> counts;  // records from this rank to each rank
    for (const auto& records : sent) counts.push_back(records.size());
    std::vector<std::size_t> all_counts(size * size);  // [from][to]
    ranks.all_gather(std::as_bytes(std::span(counts)),
                     std::as_writable_bytes(std::span(all_counts)));
    const auto rank = static_cast<std::size_t>(ranks.rank());
    std::vector<std::vector<MemberDetection>> received(size);
    received[rank] = std::move(sent[rank]);
    for (std::size_t step = 0; step < size; ++step) {
        const std::size_t peer = (step + size - rank) % size;
        if (peer == rank) continue;
        received[peer].resize(all_counts[peer * size + rank]);
        const auto send = [&] {
            ranks.send(std::as_bytes(std::span(sent[peer])), static_cast<int>(peer), kExchangeTag);
        };
        if (rank < peer) send();
        ranks.receive(std::as_writable_bytes(std::span(received[peer])), static_cast<int>(peer),
                      kExchangeTag);
        if (rank > peer) send();
    }
    return received;
}

/// Removes the detections of images before `end` from `members` and returns them. `first_member` is
/// the index of members.front() in the ensemble.
std::vector<MemberDetection> take_until(std::int64_t end, std::size_t first_member,
                                        std::vector<Member>& members) {
    std::vector<MemberDetection> result;
    for (std::size_t index = 0; index < members.size(); ++index) {
        std::span<const Detection>& rest = members[index].detections;
        for (; !rest.empty() && rest.front().image < end; rest = rest.subspan(1)) {
            result.push_back({static_cast<std::int32_t>(first_member + index), rest.front()});
        }
    }
    return result;
}

std::vector<Detection> fuse_images(const std::vector<std::vector<MemberDetection>>& received,
                                   std::span<const double> weights, const FusionOptions& options) {
    std::vector<MemberDetection> pooled;
    for (const auto& part : received) pooled.insert(pooled.end(), part.begin(), part.end());
    const auto image_of = [](const MemberDetection& entry) { return entry.detection.image; };
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

constexpr double kMaxFusedImages = 1e5;  // images x distinct draws; fused in about ten seconds

std::vector<Member> select_members(const DrawnMembers& members, const std::vector<float>& weights) {
    std::vector<Member> drawn;  // a member that was drawn n times has weight n
    for (std::size_t index = 0; index < members.local.size(); ++index) {
        const float weight = weights.at(static_cast<std::size_t>(members.first) + index);
        if (weight == 0) continue;
        drawn.push_back({members.local[index].detections, static_cast<double>(weight)});
    }
    return drawn;
}

struct Candidate {
    std::int32_t category;
    double weighted_score;
    Box box;
};

/// The candidates of one category, best first.
using Candidates = std::span<const Candidate>;

struct Cluster {
    double score_sum = 0, boxes = 0;
    // Sums of the coordinates of the boxes, each times the weighted score of its box.
    double left = 0, top = 0, right = 0, bottom = 0;

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

std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> local,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images) {
    const bool legal =
        images >= 0 && chunk_images > 0 && options.limit > 0 &&
        std::ranges::all_of(local, [&](const Member& member) { return is_legal(member, images); });
    const std::size_t first_member =
        count_models_before(ranks, {images, chunk_images, options, legal, local.size()});
    std::vector<double> local_weights;
    for (const Member& member : local) local_weights.push_back(member.weight);
    const std::vector<double> weights =
        comm::broadcast(ranks, comm::gather(ranks, std::move(local_weights)));
    std::vector<Member> rest(local.begin(), local.end());
    std::vector<Detection> result;
    for (std::int64_t taken = 0; taken < images;) {
        std::vector<std::vector<MemberDetection>> sent;  // [rank that fuses these images]
        for (int rank = 0; rank < ranks.size(); ++rank) {
            taken += std::min(chunk_images, images - taken);
            sent.push_back(take_until(taken, first_member, rest));
        }
        const std::vector<Detection> fused =
            comm::gather(ranks, fuse_images(exchange(ranks, std::move(sent)), weights, options));
        result.insert(result.end(), fused.begin(), fused.end());
    }
    return result;
}

std::string reason_to_skip_draws(const MemberDraws& draws, std::int64_t images) {
    const auto fusions = static_cast<double>(draws.weights.size());
    if (fusions * static_cast<double>(images) <= kMaxFusedImages) return "";
    return fmt::format("{} fusions of the detections in {} images are too many",
                       draws.weights.size(), images);
}

std::optional<Interval> bootstrap_detections(comm::Communicator& ranks, const DrawnMembers& members,
                                             const DetectionTruth& truth, double threshold,
                                             const FusionOptions& options) {
    const MemberDraws& draws = members.draws;
    std::vector<std::vector<CategoryMatches>> matches;  // [distinct draw]
    for (const std::vector<float>& weights : draws.weights) {
        const std::vector<Detection> fused =
            fuse_detections(ranks, select_members(members, weights), truth.images, options);
        if (ranks.rank() == 0) matches.push_back(match(truth, fused, threshold));
    }
    if (ranks.rank() != 0) return std::nullopt;
    std::vector<double> means;
    for (std::size_t replicate = 0; replicate < draws.draw_index.size(); ++replicate) {
        const auto mean =
            mean_precision_of_draw(matches[draws.draw_index[replicate]],
                                   draw_images(truth.images, draws.sample_stream(replicate)));
        if (mean) means.push_back(*mean);
    }
    return interval_of_draws(std::move(means));
}

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
