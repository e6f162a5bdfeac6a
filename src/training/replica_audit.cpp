// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/training/replica_audit.hpp>

namespace hpcai::training {
namespace {

struct HashedPart {
    const char* name;
    std::uint64_t ReplicaHashes::*hash;
};
constexpr std::array kHashedParts{HashedPart{"parameters", &ReplicaHashes::parameters},
                                  HashedPart{"optimizer state", &ReplicaHashes::optimizer_state},
                                  HashedPart{"statistics", &ReplicaHashes::statistics}};

/// Returns the hashes that more than half of the replicas have; null without such a majority.
const ReplicaHashes* majority(std::span<const ReplicaHashes> all) {
    for (const ReplicaHashes& replica : all) {
        const auto equal = static_cast<std::size_t>(std::ranges::count(all, replica));
        if (2 * equal > all.size()) return &replica;
    }
    return nullptr;
}

std::string message(const Divergence& divergence) {
    return fmt::format(
        "replica audit after step {}: different {} among {} ranks; diverged group ranks: {}",
        divergence.step, fmt::join(divergence.parts, " and "), divergence.ranks,
        fmt::join(divergence.group_ranks, ", "));
}

}  // namespace

std::optional<Divergence> find_divergence(std::span<const ReplicaHashes> by_group_rank,
                                          std::span<const int> shards, std::int64_t step) {
    std::map<int, std::vector<int>> ranks_of_shard;
    for (std::size_t rank = 0; rank < shards.size(); ++rank) {
        ranks_of_shard[shards[rank]].push_back(static_cast<int>(rank));
    }
    Divergence found{.step = step};
    std::array<bool, kHashedParts.size()> differs{};
    for (const auto& [shard, ranks] : ranks_of_shard) {
        std::vector<ReplicaHashes> replicas;
        for (const int rank : ranks) replicas.push_back(by_group_rank[rank]);
        if (std::ranges::count(replicas, replicas.front()) == std::ssize(replicas)) continue;
        found.ranks += static_cast<int>(ranks.size());
        const ReplicaHashes* correct = majority(replicas);
        for (std::size_t index = 0; index < ranks.size(); ++index) {
            if (correct != nullptr && replicas[index] == *correct) continue;
            found.group_ranks.push_back(ranks[index]);
        }
        for (std::size_t index = 0; index < differs.size(); ++index) {
            const auto hash = kHashedParts[index].hash;
            differs[index] |=
                std::ranges::count(replicas, replicas.front().*hash, hash) < std::ssize(replicas);
        }
    }
    if (found.group_ranks.empty()) return std::nullopt;
    for (std::size_t index = 0; index < differs.size(); ++index) {
        if (differs[index]) found.parts.emplace_back(kHashedParts[index].name);
    }
    std::ranges::sort(found.group_ranks);
    return found;
}

ReplicaDivergence::ReplicaDivergence(Divergence divergence)
    : Error(ExitCode::invalid, message(divergence)), divergence_(std::move(divergence)) {}

std::uint64_t ReplicaAudit::hash_optimizer_state() {
    constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, an odd number
    std::uint64_t hash = 0;
    for (int state = 0; state < store_.states(); ++state) {
        hash = hash * kFactor + device_.hash(store_.state(state));
    }
    return hash;
}

void ReplicaAudit::audit(std::int64_t step, bool compares) {
    if (!has_replicas()) return;
    ReplicaHashes mine;
    if (compares) mine = {device_.hash(store_.parameters()), hash_optimizer_state(), 0};
    compare(mine, step);
}

void ReplicaAudit::audit_final_state(std::int64_t step) {
    if (!has_replicas()) return;
    compare({device_.hash(store_.parameters()), hash_optimizer_state(),
             device_.hash(store_.statistics())},
            step);
}

void ReplicaAudit::compare(const ReplicaHashes& mine, std::int64_t step) {
    const std::vector<ReplicaHashes> all = comm::all_gather(group_, mine);
    if (auto divergence = find_divergence(all, shards_, step)) {
        divergence->passed_before = passed_;
        // No rank may throw before all have the hashes. A rank that throws announces its failure,
        // which ends the calls of other ranks before they can report the difference.
        try {
            group_.barrier();
        } catch (const Error&) {
            // Another rank passed the barrier first and has thrown.
        }
        throw ReplicaDivergence(std::move(*divergence));
    }
    const bool has_compared = std::ranges::count(all, ReplicaHashes{}) < group_.size();
    if (has_compared) ++passed_;
}

}  // namespace hpcai::training
