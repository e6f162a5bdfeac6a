// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/device_health.hpp>

#include "sections.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kListedFailures = 20;

bool failed(const GroupRecord& group) {
    return !group.failure.empty();
}

Quantity quality_of(const RunRecord& record, std::size_t index) {
    const auto& members = record.quality.members;
    return index < members.size() ? members[index] : Quantity{};
}

std::vector<Markup> cells_of_group(const RunRecord& record, std::size_t index) {
    const GroupRecord& group = record.work.groups[index];
    return row(group.group, group.ranks, format_count(group.samples_trained),
               format_count(group.iterations), number(group.training_seconds, "{:.2f}"),
               number(group.images_per_second, "{:.2f}"), flops_text(group.flops),
               number(group.final_training_loss, "{:.4f}"),
               failed(group) ? element("strong", {text("failed")})
                             : text(quality_text(quality_of(record, index))));
}

std::vector<Markup> cells_of_ensemble(const RunRecord& record) {
    int ranks = 0;
    for (const GroupRecord& group : record.work.groups) ranks += failed(group) ? 0 : group.ranks;
    return row("ensemble", ranks, format_count(record.work.samples_trained),
               format_count(record.work.iterations), number(record.time.training_seconds, "{:.2f}"),
               number(record.throughput.images_per_second, "{:.2f}"),
               flops_text(record.scores.flops), "", quality_text(record.quality.ensemble));
}

Markup table_of_groups(const RunRecord& record) {
    Table groups;
    groups.caption = "Base models, one a group";
    groups.columns = {left("group"), "ranks", "samples", "steps",  "seconds",
                      "images/s",    "FLOPS", "loss",    "quality"};
    for (std::size_t index = 0; index < record.work.groups.size(); ++index) {
        groups.rows.push_back(cells_of_group(record, index));
    }
    groups.totals.push_back(cells_of_ensemble(record));
    return table(groups) +
           note(fmt::format(
               "samples: trained on, over all epochs; FLOPS: operations a second of training, "
               "counted by {}; loss: mean over the last epoch; quality: {} on the test data with "
               "the "
               "weights of the last epoch.",
               record.flops.convention, record.quality.metric));
}

Markup failures(const RunRecord& record) {
    std::vector<std::string> lines;
    for (const GroupRecord& group : record.work.groups) {
        if (failed(group)) lines.push_back(fmt::format("Group {}: {}", group.group, group.failure));
    }
    if (lines.empty()) return {};
    const std::string title =
        fmt::format("{} of {} groups failed", lines.size(), record.work.groups.size());
    return element("h3", {text(title)}) + reasons(lines, kListedFailures, "more");
}

/// Whether the ranks of each group trained one model.
Markup audits(const RunRecord& record) {
    Table audits;
    audits.caption =
        "Replicas: comparisons of what the ranks of a group hold, and the model it left";
    audits.columns = {left("group"), "passed", left("differed"), left("SHA-256 of the model")};
    audits.unfolded = 4;
    for (std::size_t index = 0; index < record.work.groups.size(); ++index) {
        const GroupRecord& group = record.work.groups[index];
        std::string differed = "never";
        if (group.audit.diverged_at_step > 0) {
            std::set<std::string> ranks;
            for (const DivergedRankRecord& rank : group.audit.ranks) {
                ranks.insert(fmt::format("{} on {}", rank.world_rank, rank.host));
            }
            differed = fmt::format("after step {}: {}; rank {}", group.audit.diverged_at_step,
                                   fmt::join(group.audit.differs, ", "), fmt::join(ranks, ", "));
        }
        const std::string digest =
            index < record.training_digest.size() ? record.training_digest[index] : "";
        audits.rows.push_back(
            row(group.group, group.audit.passed, differed,
                element("code", {text(digest.empty() ? "none" : digest.substr(0, 16))})));
    }
    return table(audits);
}

/// What the drivers of GPUs told while they trained.
Markup health_of_gpus(const RunRecord& record) {
    Table gpus;
    gpus.caption = "GPUs while they trained, by their driver";
    gpus.columns = {"rank",
                    left("host"),
                    left("slowed by"),
                    "of the looks",
                    "corrected memory errors",
                    left("uncorrected ones and Xids")};
    gpus.unfolded = 4;
    for (const GroupRecord& group : record.work.groups) {
        for (const DeviceHealthRecord& one : group.device_health) {
            const std::string errors = errors_text(one);
            const std::string reasons = fmt::format("{}", fmt::join(one.slowed_by, ", "));
            gpus.rows.push_back(row(one.world_rank, one.host, reasons.empty() ? "nothing" : reasons,
                                    quantity(percent_of(one.slowed_share), "{:.0f}", " %"),
                                    quantity(one.corrected_ecc_errors, "{:.0f}"),
                                    errors.empty() ? quantity(one.uncorrected_ecc_errors, "{:.0f}")
                                                   : element("strong", {text(errors)})));
        }
    }
    return gpus.rows.empty() ? Markup{} : table(gpus);
}

}  // namespace

Markup groups_section(const RunRecord& record) {
    return section("groups", "Groups",
                   rank_map(record) + table_of_groups(record) + failures(record) + audits(record) +
                       health_of_gpus(record));
}

}  // namespace hpcai::report
