// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

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

std::vector<std::span<const ReplicaHashes>> stages_of(std::span<const ReplicaHashes> by_group_rank,
                                                      int replicas) {
    const auto size = static_cast<std::size_t>(replicas);
    std::vector<std::span<const ReplicaHashes>> stages;
    for (std::size_t first = 0; first < by_group_rank.size(); first += size) {
        stages.push_back(by_group_rank.subspan(first, size));
    }
    return stages;
}

bool differs(std::span<const ReplicaHashes> stage, const Part& part) {
    return std::ranges::any_of(stage, [&](const ReplicaHashes& one) {
        return one.*part.hash != stage.front().*part.hash;
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
                                          int replicas, std::int64_t step) {
    Divergence found;
    found.step = step;
    for (const Part& part : kParts) {
        if (std::ranges::any_of(stages_of(by_group_rank, replicas),
                                [&](const auto& stage) { return differs(stage, part); })) {
            found.parts.emplace_back(part.name);
        }
    }
    if (found.parts.empty()) return std::nullopt;
    int first = 0;
    for (const std::span<const ReplicaHashes> stage : stages_of(by_group_rank, replicas)) {
        const ReplicaHashes* right = majority(stage);
        const bool has_diverged =
            std::ranges::any_of(kParts, [&](const Part& part) { return differs(stage, part); });
        if (has_diverged) found.ranks += replicas;
        for (int replica = 0; replica < replicas; ++replica) {
            const ReplicaHashes& one = stage[static_cast<std::size_t>(replica)];
            if (right == nullptr || one != *right) found.group_ranks.push_back(first + replica);
        }
        first += replicas;
    }
    return found;
}

ReplicaDivergence::ReplicaDivergence(Divergence divergence)
    : Error(ExitCode::invalid, message(divergence)), divergence_(std::move(divergence)) {}

void ReplicaAudit::after_step(std::int64_t step) {
    if (is_due(step)) now(step);
}

std::uint64_t ReplicaAudit::hash_of_states() {
    std::uint64_t hash = 0;
    for (int state = 0; state < store_.states(); ++state) {
        hash = hash * 0x9e3779b97f4a7c15 + device_.hash(store_.state(state));
    }
    return hash;
}

void ReplicaAudit::now(std::int64_t step, bool compares) {
    if (replicas_ == 1) return;
    compare(compares ? ReplicaHashes{device_.hash(store_.parameters()), hash_of_states(), 0}
                     : ReplicaHashes{},
            step);
}

void ReplicaAudit::at_the_end(std::int64_t step) {
    if (replicas_ == 1) return;
    compare(
        {device_.hash(store_.parameters()), hash_of_states(), device_.hash(store_.statistics())},
        step);
}

void ReplicaAudit::compare(const ReplicaHashes& mine, std::int64_t step) {
    std::vector<ReplicaHashes> all(static_cast<std::size_t>(group_.size()));
    group_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    if (auto divergence = find_divergence(all, replicas_, step)) {
        divergence->passed_before = passed_;
        wait_for_all(group_);
        throw ReplicaDivergence(std::move(*divergence));
    }
    const bool nothing = std::ranges::count(all, ReplicaHashes{}) == group_.size();
    if (!nothing) ++passed_;
}

}  // namespace hpcai::training
