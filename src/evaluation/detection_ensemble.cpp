// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <type_traits>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/evaluation/detection_ensemble.hpp>

namespace hpcai::evaluation {
namespace {

constexpr int kExchangeTag = 3;

static_assert(std::is_trivially_copyable_v<MemberDetection>);

/// Returns the values of every rank, one rank after the other. All have equally many.
template <typename T>
std::vector<T> all_gather(comm::Communicator& ranks, const std::vector<T>& mine) {
    std::vector<T> all(mine.size() * static_cast<std::size_t>(ranks.size()));
    ranks.all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
    return all;
}

/// What must be the same on all ranks, and how many models each has.
struct Terms {
    std::int64_t images;
    std::int64_t chunk_images;
    std::int64_t limit;
    Merging merging;
    double overlap;
    double lowest_score;
    std::int64_t legal;
    std::int64_t models;
};

bool same(const Terms& a, const Terms& b) {
    return a.images == b.images && a.chunk_images == b.chunk_images && a.limit == b.limit &&
           a.merging == b.merging && a.overlap == b.overlap && a.lowest_score == b.lowest_score;
}

bool is_legal(const Member& member, std::int64_t images) {
    return std::ranges::is_sorted(member.detections, {}, &Detection::image) &&
           (member.detections.empty() ||
            (member.detections.front().image >= 0 && member.detections.back().image < images)) &&
           member.weight > 0;
}

/// Every rank's number of models.
std::vector<std::int64_t> agree(comm::Communicator& ranks, const Terms& mine) {
    const std::vector<Terms> all = comm::all_gather(ranks, mine);
    std::vector<std::int64_t> models;
    std::int64_t sum = 0;
    for (const Terms& terms : all) {
        ensure(terms.legal != 0 && same(terms, all.front()),
               "the members' detections do not fit together; here {} images in rounds of {}, {} "
               "models",
               mine.images, mine.chunk_images, mine.models);
        models.push_back(terms.models);
        sum += terms.models;
    }
    ensure(sum > 0, "a fusion of no model's detections");
    return models;
}

/// The weights of all ranks' models, in order.
std::vector<double> gather_weights(comm::Communicator& ranks, std::span<const Member> mine,
                                   const std::vector<std::int64_t>& models) {
    const auto width = static_cast<std::size_t>(*std::ranges::max_element(models));
    std::vector<double> padded(width);
    std::ranges::transform(mine, padded.begin(), &Member::weight);
    const std::vector<double> all = all_gather(ranks, padded);
    std::vector<double> weights;
    for (std::size_t rank = 0; rank < models.size(); ++rank) {
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(rank * width);
        weights.insert(weights.end(), first, first + static_cast<std::ptrdiff_t>(models[rank]));
    }
    return weights;
}

/// Gives rank r what `sent[r]` has; returns what came from each rank. In step s the ranks whose
/// sum is s modulo their number exchange, the lower sending first, so none waits in a circle.
std::vector<std::vector<MemberDetection>> exchange(comm::Communicator& ranks,
                                                   std::vector<std::vector<MemberDetection>> sent) {
    const std::size_t size = sent.size();
    std::vector<std::size_t> counts;  // of the records from this rank to each other
    for (const auto& records : sent) counts.push_back(records.size());
    counts = all_gather(ranks, counts);  // [from][to]
    const auto me = static_cast<std::size_t>(ranks.rank());
    std::vector<std::vector<MemberDetection>> came(size);
    came[me] = std::move(sent[me]);
    for (std::size_t step = 0; step < size; ++step) {
        const std::size_t other = (step + size - me) % size;
        if (other == me) continue;
        came[other].resize(counts[other * size + me]);
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

/// The models of one rank, handed out image by image.
class Deck {
public:
    Deck(std::span<const Member> members, std::int64_t first_member)
        : members_(members), first_member_(first_member), next_(members.size()) {}

    /// The detections of images below `end` that were not taken before.
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
    std::vector<std::size_t> next_;  // by member, the first that was not taken
};

/// Fuses the detections of all models, image by image.
std::vector<Detection> fuse_images(const std::vector<std::vector<MemberDetection>>& came,
                                   std::span<const double> weights, const FusionOptions& options) {
    std::vector<MemberDetection> pooled;
    for (const auto& records : came) pooled.insert(pooled.end(), records.begin(), records.end());
    const auto image_of = [](const MemberDetection& one) { return one.detection.image; };
    std::ranges::stable_sort(pooled, {}, image_of);  // members stay in order
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

}  // namespace

std::vector<Detection> fuse_detections(comm::Communicator& ranks, std::span<const Member> mine,
                                       std::int64_t images, const FusionOptions& options,
                                       std::int64_t chunk_images) {
    const bool legal =
        images >= 0 && chunk_images > 0 && options.limit > 0 &&
        std::ranges::all_of(mine, [&](const Member& one) { return is_legal(one, images); });
    const std::vector<std::int64_t> models =
        agree(ranks, {images, chunk_images, options.limit, options.merging, options.overlap,
                      options.lowest_score, legal, static_cast<std::int64_t>(mine.size())});
    const std::vector<double> weights = gather_weights(ranks, mine, models);
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

}  // namespace hpcai::evaluation
