// SPDX-License-Identifier: Apache-2.0
#include "divergence.hpp"

#include <cstddef>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace hpcai::group {
namespace {

constexpr std::size_t kMaxNamed = 8;  // ranks in a message; the record has all diverged ranks

std::string names_of(const std::vector<DivergedRankRecord>& ranks) {
    std::vector<std::string> names;
    for (const DivergedRankRecord& rank : ranks | std::views::take(kMaxNamed)) {
        names.push_back(fmt::format("group rank {} (world rank {}, {})", rank.group_rank,
                                    rank.world_rank, rank.host));
    }
    if (ranks.size() > kMaxNamed) {
        names.push_back(fmt::format("{} more", ranks.size() - kMaxNamed));
    }
    return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

AuditRecord failed_audit(const context::RunContext& context,
                         const training::Divergence& divergence) {
    AuditRecord audit;
    audit.passed = divergence.passed_before;
    audit.diverged_at_step = divergence.step;
    audit.differs = divergence.parts;
    for (const int rank : divergence.group_ranks) {
        const int world_rank = context.controller.world_rank_of(context.place.group, rank);
        audit.ranks.push_back({rank, world_rank, context.host(world_rank)});
    }
    return audit;
}

std::string describe_divergence(const AuditRecord& audit, int ranks) {
    const int others = ranks - static_cast<int>(audit.ranks.size());
    const std::string what = fmt::format("{}", fmt::join(audit.differs, " and "));
    const std::string who = names_of(audit.ranks);
    const bool is_singular = audit.differs == std::vector<std::string>{"optimizer state"};
    const char* verb = is_singular ? "differs" : "differ";
    const std::string how =
        others > 0 ? fmt::format("of {} {} from those of the other {} ranks", who, verb, others)
                   : fmt::format("{} between {}", verb, who);
    return fmt::format("replica audit after step {}: {} {}", audit.diverged_at_step, what, how);
}

}  // namespace hpcai::group
