// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/training/replica_audit.hpp>

namespace hpcai::training {
namespace {

struct Part {
    const char* name;
    std::uint64_t ReplicaHashes::*hash;
};
constexpr std::array kParts{Part{"parameters", &ReplicaHashes::parameters},
                            Part{"optimizer state", &ReplicaHashes::optimizer_state},
                            Part{"statistics", &ReplicaHashes::statistics}};

/// The group ranks of each slice, ascending.
std::vector<std::vector<int>> ranks_by_slice(std::span<const int> slices) {
    std::map<int, std::vector<int>> ranks;
    for (std::size_t rank = 0; rank < slices.size(); ++rank) {
        ranks[slices[rank]].push_back(static_cast<int>(rank));
    }
    std::vector<std::vector<int>> all;
    for (auto& [slice, of_slice] : ranks) all.push_back(std::move(of_slice));
    return all;
}

std::vector<ReplicaHashes> hashes_of(std::span<const ReplicaHashes> by_group_rank,
                                     const std::vector<int>& ranks) {
    std::vector<ReplicaHashes> hashes;
    for (const int rank : ranks) hashes.push_back(by_group_rank[rank]);
    return hashes;
}

bool differs(std::span<const ReplicaHashes> slice, const Part& part) {
    return std::ranges::any_of(slice, [&](const ReplicaHashes& one) {
        return one.*part.hash != slice.front().*part.hash;
    });
}

/// What more than half of the ranks hold; null where there is no such majority.
const ReplicaHashes* majority(std::span<const ReplicaHashes> all) {
    for (const ReplicaHashes& one : all) {
        const auto equal = static_cast<std::size_t>(std::ranges::count(all, one));
        if (2 * equal > all.size()) return &one;
    }
    return nullptr;
}

std::string message(const Divergence& divergence) {
    return fmt::format("replica audit after step {}: {} differ, group ranks {} of {} compared",
                       divergence.step, fmt::join(divergence.parts, " and "),
                       fmt::join(divergence.group_ranks, ", "), divergence.ranks);
}

/// A rank that ends tells the others to wait no more: none may before all have every hash, or some
/// would not know what differs.
void wait_for_all(comm::Communicator& group) {
    try {
        group.barrier();
    } catch (const Error&) {
        // Another came through first and has ended.
    }
}

}  // namespace

std::optional<Divergence> find_divergence(std::span<const ReplicaHashes> by_group_rank,
                                          std::span<const int> slices, std::int64_t step) {
    const std::vector<std::vector<int>> all = ranks_by_slice(slices);
    Divergence found;
    found.step = step;
    for (const Part& part : kParts) {
        if (std::ranges::any_of(all, [&](const std::vector<int>& ranks) {
                return differs(hashes_of(by_group_rank, ranks), part);
            })) {
            found.parts.emplace_back(part.name);
        }
    }
    if (found.parts.empty()) return std::nullopt;
    for (const std::vector<int>& ranks : all) {
        const std::vector<ReplicaHashes> slice = hashes_of(by_group_rank, ranks);
        const ReplicaHashes* right = majority(slice);
        const bool has_diverged =
            std::ranges::any_of(kParts, [&](const Part& part) { return differs(slice, part); });
        if (has_diverged) found.ranks += static_cast<int>(ranks.size());
        for (std::size_t replica = 0; replica < ranks.size(); ++replica) {
            if (right != nullptr && slice[replica] == *right) continue;
            found.group_ranks.push_back(ranks[replica]);
        }
    }
    std::ranges::sort(found.group_ranks);
    return found;
}

ReplicaDivergence::ReplicaDivergence(Divergence divergence)
    : Error(ExitCode::invalid, message(divergence)), divergence_(std::move(divergence)) {}

std::uint64_t ReplicaAudit::hash_of_states() {
    std::uint64_t hash = 0;
    for (int state = 0; state < store_.states(); ++state) {
        hash = hash * 0x9e3779b97f4a7c15 + device_.hash(store_.state(state));
    }
    return hash;
}

void ReplicaAudit::now(std::int64_t step, bool compares) {
    if (!has_replicas()) return;
    compare(compares ? ReplicaHashes{device_.hash(store_.parameters()), hash_of_states(), 0}
                     : ReplicaHashes{},
            step);
}

void ReplicaAudit::at_the_end(std::int64_t step) {
    if (!has_replicas()) return;
    compare(
        {device_.hash(store_.parameters()), hash_of_states(), device_.hash(store_.statistics())},
        step);
}

void ReplicaAudit::compare(const ReplicaHashes& mine, std::int64_t step) {
    const std::vector<ReplicaHashes> all = comm::all_gather(group_, mine);
    if (auto divergence = find_divergence(all, slices_, step)) {
        divergence->passed_before = passed_;
        wait_for_all(group_);
        throw ReplicaDivergence(std::move(*divergence));
    }
    const bool nothing = std::ranges::count(all, ReplicaHashes{}) == group_.size();
    if (!nothing) ++passed_;
}

}  // namespace hpcai::training
