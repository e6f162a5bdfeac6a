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

}  // namespace

Vote hold_vote(const Workload& workload, const GroupOutcome& mine, comm::Communicator& leaders) {
    const Stopwatch watch;
    Vote vote;
    for (const std::string& text : gather_texts(leaders, report::to_json(mine.result))) {
        vote.members.push_back(report::group_from_json(text));
    }
    vote.predictions = workload.combine(mine, leaders, vote.quality);
    vote.seconds = watch.seconds();
    return vote;
}

}  // namespace hpcai::benchmark
