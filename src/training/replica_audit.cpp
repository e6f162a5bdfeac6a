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

/// What more than half of the ranks hold; null where there is no such majority.
const ReplicaHashes* majority(std::span<const ReplicaHashes> all) {
    for (const ReplicaHashes& one : all) {
        const auto equal = static_cast<std::size_t>(std::ranges::count(all, one));
        if (2 * equal > all.size()) return &one;
    }
    return nullptr;
}

std::string message(const Divergence& divergence) {
    return fmt::format("replica audit after step {}: {} differ, group ranks {} of {}",
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
                                          std::int64_t step) {
    Divergence found;
    found.step = step;
    found.ranks = static_cast<int>(by_group_rank.size());
    for (const Part& part : kParts) {
        const bool differs = std::ranges::any_of(by_group_rank, [&](const ReplicaHashes& one) {
            return one.*part.hash != by_group_rank.front().*part.hash;
        });
        if (differs) found.parts.emplace_back(part.name);
    }
    if (found.parts.empty()) return std::nullopt;
    const ReplicaHashes* right = majority(by_group_rank);
    for (int rank = 0; rank < found.ranks; ++rank) {
        const ReplicaHashes& one = by_group_rank[static_cast<std::size_t>(rank)];
        if (right == nullptr || one != *right) found.group_ranks.push_back(rank);
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

void ReplicaAudit::now(std::int64_t step) {
    if (group_.size() == 1) return;
    compare({device_.hash(store_.parameters()), hash_of_states(), 0}, step);
}

void ReplicaAudit::at_the_end(std::int64_t step) {
    if (group_.size() == 1) return;
    compare(
        {device_.hash(store_.parameters()), hash_of_states(), device_.hash(store_.statistics())},
        step);
}

void ReplicaAudit::compare(const ReplicaHashes& mine, std::int64_t step) {
    std::vector<ReplicaHashes> all(static_cast<std::size_t>(group_.size()));
    group_.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)));
    if (auto divergence = find_divergence(all, step)) {
        divergence->passed_before = passed_;
        wait_for_all(group_);
        throw ReplicaDivergence(std::move(*divergence));
    }
    ++passed_;
}

}  // namespace hpcai::training
