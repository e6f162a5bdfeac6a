// SPDX-License-Identifier: Apache-2.0
#include "vote.hpp"

#include <hpcai/base/clock.hpp>
#include <hpcai/report/json.hpp>
#include <hpcai/storage/file.hpp>

namespace hpcai::benchmark {
namespace {

/// The text of every rank at rank 0, in order; elsewhere empty.
std::vector<std::string> gather_texts(comm::Communicator& ranks, const std::string& mine) {
    constexpr int kTag = 2;
    std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks.size()));
    const auto size = static_cast<std::int64_t>(mine.size());
    ranks.all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
    if (ranks.rank() != 0) {
        ranks.send(storage::bytes_of(mine), 0, kTag);
        return {};
    }
    std::vector<std::string> all{mine};
    for (int rank = 1; rank < ranks.size(); ++rank) {
        std::string text(static_cast<std::size_t>(sizes[static_cast<std::size_t>(rank)]), '\0');
        ranks.receive(std::as_writable_bytes(std::span(text)), rank, kTag);
        all.push_back(std::move(text));
    }
    return all;
}

std::vector<std::int32_t> training_labels(const data::SampleSet& samples) {
    std::vector<std::int32_t> labels;
    for (std::int64_t sample = 0; sample < samples.samples(); ++sample) {
        labels.push_back(samples.label(static_cast<std::uint32_t>(sample)));
    }
    return labels;
}

}  // namespace

Vote hold_vote(const Start& start, const GroupOutcome& mine, comm::Communicator& leaders) {
    const Stopwatch watch;
    const std::int64_t classes = start.config.workload.classes;
    Vote vote;
    for (const std::string& text : gather_texts(leaders, report::to_json(mine.result))) {
        vote.members.push_back(report::group_from_json(text));
    }
    std::vector<float> soft =
        evaluation::ensemble_soft_vote(leaders, mine.validation.probabilities, classes);
    std::vector<float> majority =
        evaluation::ensemble_majority(leaders, mine.validation.probabilities, classes);
    const bool by_majority = start.config.bagging.aggregation == config::Aggregation::majority;
    vote.labels = mine.validation.labels;
    if (leaders.rank() == 0) {
        vote.majority = evaluation::top_k(majority, vote.labels, classes);
        vote.ensemble = by_majority ? vote.majority : evaluation::top_k(soft, vote.labels, classes);
    }
    vote.probabilities = by_majority ? std::move(majority) : std::move(soft);
    if (start.config.bagging.out_of_bag) {
        vote.out_of_bag = evaluation::out_of_bag_vote(
            leaders, {mine.out_of_bag, mine.out_of_bag_samples.probabilities, classes},
            training_labels(*start.samples.training));
    }
    vote.seconds = watch.seconds();
    return vote;
}

}  // namespace hpcai::benchmark
