// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/evaluation/ensemble.hpp>

namespace hpcai::evaluation {
namespace {

constexpr int kRoot = 0;

/// Checks that all ranks have the same sizes, because unequal reductions would wait forever.
void check_agreement(comm::Communicator& members, std::int64_t samples, std::int64_t classes,
                     std::int64_t chunk_rows) {
    const std::array<std::int64_t, 3> local{samples, classes, chunk_rows};
    for (const auto& remote : comm::all_gather(members, local)) {
        ensure(
            remote == local,
            "vote: sizes differ between members; this one has {} samples, {} classes, chunks of {}",
            samples, classes, chunk_rows);
    }
}

/// Sets `rows` (mask.size(), classes + 1). A row with a `mask` of 1 gets the first `classes` values
/// of `packed`, and 1 in the last column. Removes these values from `packed`. Other rows are 0.
void unpack(std::span<const std::uint8_t> mask, std::span<const float>& packed,
            std::span<float> rows) {
    const std::size_t classes = rows.size() / mask.size() - 1;
    std::ranges::fill(rows, 0.0F);
    for (std::size_t row = 0; row < mask.size(); ++row) {
        if (mask[row] == 0) continue;
        float* target = rows.data() + row * (classes + 1);
        std::ranges::copy(packed.first(classes), target);
        target[classes] = 1.0F;
        packed = packed.subspan(classes);
    }
}

/// Adds the counts of the samples in `rows`, which are the sums of all members' unpack() rows.
void count_out_of_bag(std::span<const float> rows, std::span<const std::int32_t> labels,
                      OutOfBagQuality& quality) {
    const std::size_t width = rows.size() / labels.size();
    for (std::size_t row = 0; row < labels.size(); ++row) {
        // The sum has the same ranking as the mean.
        const std::span<const float> sum = rows.subspan(row * width, width);
        if (sum.back() == 0.0F) continue;
        const TopK hits = top_k(sum.first(width - 1), labels.subspan(row, 1),
                                static_cast<std::int64_t>(width - 1));
        quality.counts.correct_1 += hits.correct_1;
        quality.counts.correct_5 += hits.correct_5;
        quality.counts.samples += hits.samples;
        ++quality.covered;
    }
}

bool sizes_match(const OutOfBagPredictions& local) {
    const auto ones = std::ranges::count_if(local.out_of_bag, [](auto bit) { return bit != 0; });
    return local.classes > 0 &&
           static_cast<std::size_t>(ones) * static_cast<std::size_t>(local.classes) ==
               local.probabilities.size();
}

bool labels_match(const OutOfBagPredictions& local, std::span<const std::int32_t> labels) {
    return labels.size() == local.out_of_bag.size() &&
           std::ranges::all_of(labels, [&](std::int32_t label) {
               return label >= kPaddingLabel && label < local.classes;
           });
}

}  // namespace

std::vector<float> ensemble_vote(comm::Communicator& members, Vote vote,
                                 std::span<const float> probabilities, std::int64_t classes,
                                 std::int64_t chunk_rows) {
    const std::int64_t size = std::ssize(probabilities);
    const std::int64_t samples = classes < 1 || size % classes != 0 ? -1 : size / classes;
    check_agreement(members, samples, classes, chunk_rows);
    ensure(samples >= 0 && chunk_rows > 0, "vote on {} probabilities, {} classes, chunks of {}",
           probabilities.size(), classes, chunk_rows);
    const auto width = static_cast<std::size_t>(classes);
    const std::size_t chunk = static_cast<std::size_t>(std::min(chunk_rows, samples)) * width;
    const auto member_count = static_cast<float>(members.size());
    const bool is_root = members.rank() == kRoot;
    std::vector<float> result(is_root ? probabilities.size() : 0);
    std::vector<float> scratch(is_root ? 0 : chunk);
    for (std::size_t start = 0; start < probabilities.size(); start += chunk) {
        const std::size_t count = std::min(chunk, probabilities.size() - start);
        const std::span<float> rows =
            is_root ? std::span(result).subspan(start, count) : std::span(scratch).first(count);
        cast_votes(vote, probabilities.subspan(start, count), rows, width);
        members.reduce_sum(rows, kRoot);
        if (is_root) normalize_votes(vote, rows, width, member_count);
    }
    return result;
}

OutOfBagQuality out_of_bag_vote(comm::Communicator& members, const OutOfBagPredictions& local,
                                std::span<const std::int32_t> labels, std::int64_t chunk_rows) {
    const bool is_root = members.rank() == kRoot;
    const bool legal =
        sizes_match(local) && chunk_rows > 0 && (!is_root || labels_match(local, labels));
    const std::int64_t samples = std::ssize(local.out_of_bag);
    check_agreement(members, legal ? samples : -1, local.classes, chunk_rows);
    ensure(legal,
           "out-of-bag vote: invalid sizes: {} samples, {} probabilities, {} labels, {} classes",
           samples, local.probabilities.size(), labels.size(), local.classes);
    const auto chunk = static_cast<std::size_t>(std::min(chunk_rows, samples));
    const auto width = static_cast<std::size_t>(local.classes) + 1;
    std::vector<float> memory(chunk * width);
    std::span<const float> packed = local.probabilities;
    OutOfBagQuality quality;
    for (std::size_t start = 0; start < local.out_of_bag.size(); start += chunk) {
        const std::size_t count = std::min(chunk, local.out_of_bag.size() - start);
        const std::span<float> rows = std::span(memory).first(count * width);
        unpack(local.out_of_bag.subspan(start, count), packed, rows);
        members.reduce_sum(rows, kRoot);
        if (is_root) count_out_of_bag(rows, labels.subspan(start, count), quality);
    }
    return quality;
}

}  // namespace hpcai::evaluation
