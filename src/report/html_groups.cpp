// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <fmt/core.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/units.hpp>
#include <hpcai/report/record_text.hpp>

#include "markup.hpp"

namespace hpcai::report {
namespace {

constexpr std::size_t kRanksWithNumbers = 128;  // with more ranks, raster() replaces rank_cells()
constexpr std::size_t kNodesInARow = 64;
constexpr std::size_t kTints = 3;           // neighbouring groups have different tints
constexpr std::size_t kUnfoldedGroups = 4;  // rows that tables of placements, audits, GPUs show
constexpr std::size_t kUnfoldedFailures = 20;

bool has_failed(const GroupRecord& group) {
    return !group.failure.empty();
}

std::size_t tint_of(int group) {
    return static_cast<unsigned>(group) % kTints;
}

/// Returns increasing world ranks as "0-3, 8".
std::string ranges_of(const std::vector<int>& ranks) {
    std::string result;
    for (std::size_t first = 0; first < ranks.size();) {
        std::size_t last = first;
        while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
        result += fmt::format("{}{}", result.empty() ? "" : ", ", ranks[first]);
        if (last > first) result += fmt::format("\xE2\x80\x93{}", ranks[last]);
        first = last + 1;
    }
    return result;
}

/// Returns "node1, node2, node3 and 5 more"; with counts "4 x cpu, 4 x cuda".
std::string names_of(const std::map<std::string, int>& names, bool with_counts) {
    constexpr std::size_t kNames = 3;
    std::string result;
    std::size_t index = 0;
    for (const auto& [name, count] : names) {
        if (index++ == kNames) {
            return result + fmt::format(" and {} more", names.size() - kNames);
        }
        if (!result.empty()) result += ", ";
        result += with_counts ? fmt::format("{} \xC3\x97 {}", count, name) : name;
    }
    return result;
}

struct GroupPlace {
    std::vector<int> ranks;
    std::map<std::string, int> hosts, devices;
};

Markup placement_table(const TopologyRecord& topology) {
    std::map<int, GroupPlace> groups;
    for (const PlaceRecord& place : topology.map) {
        GroupPlace& group = groups[place.group];
        group.ranks.push_back(place.world_rank);
        ++group.hosts[place.host];
        ++group.devices[place.device];
    }
    Table places{.caption = "Placement of the groups",
                 .columns = {left("group"), left("world ranks"), left("hosts"), left("devices")},
                 .unfolded = kUnfoldedGroups};
    for (const auto& [group, place] : groups) {
        places.rows.push_back(row(group, ranges_of(place.ranks), names_of(place.hosts, false),
                                  names_of(place.devices, true)));
    }
    return table(places);
}

using Nodes = std::vector<std::vector<const PlaceRecord*>>;  // by node, then local rank

/// A row for each node with a numbered cell for each rank.
Markup rank_cells(const std::set<int>& failed, const Nodes& nodes) {
    Markup rows;
    for (const auto& places : nodes) {
        Markup ranks;
        for (const PlaceRecord* place : places) {
            const bool is_lost = failed.contains(place->group);
            ranks += element(
                fmt::format(
                    R"(li class="t{}{}" title="{}")", tint_of(place->group), is_lost ? " lost" : "",
                    text(fmt::format("world rank {}, group {}, group rank {}, {}, {}, {}{}",
                                     place->world_rank, place->group, place->group_rank,
                                     place->host, place->device, counted(place->threads, "thread"),
                                     is_lost ? ", failed" : ""))
                        .html),
                {text(fmt::format("{}", place->group)),
                 element("small", {text(fmt::format("{}", place->world_rank))})});
        }
        rows += element(R"(div class="node")",
                        {element(R"(span class="host")", {text(places.front()->host)}),
                         element("ol", {ranks})});
    }
    return element(
        "figure",
        {element("figcaption", {text("Groups on the nodes")}),
         note("Each cell is a rank; the large number is its group, the small one its world rank."),
         element(R"(div class="map")", {rows})});
}

/// A column for each node with a cell for each rank; adjacent ranks of a group form one shape.
/// Shapes are 0.1 of a cell apart.
Markup raster_band(const std::set<int>& failed,
                   std::span<const std::vector<const PlaceRecord*>> nodes, std::size_t first_node) {
    std::array<std::string, kTints + 1> paths;
    std::size_t height = 0;
    for (std::size_t column = 0; column < nodes.size(); ++column) {
        const auto& places = nodes[column];
        height = std::max(height, places.size());
        for (std::size_t first = 0; first < places.size();) {
            const int group = places[first]->group;
            std::size_t last = first;
            while (last + 1 < places.size() && places[last + 1]->group == group) ++last;
            const std::size_t tint = failed.contains(group) ? kTints : tint_of(group);
            paths[tint] += fmt::format("M{} {}h.9v{:.1f}h-.9z", column, first,
                                       static_cast<double>(last + 1 - first) - 0.1);
            first = last + 1;
        }
    }
    Markup drawn = element(
        "title", {text(fmt::format("nodes {} to {}", first_node, first_node + nodes.size() - 1))});
    for (std::size_t tint = 0; tint < paths.size(); ++tint) {
        if (paths[tint].empty()) continue;
        drawn +=
            Markup{fmt::format(R"(<path class="{}" d="{}"/>)",
                               tint == kTints ? "lost" : fmt::format("t{}", tint), paths[tint])};
    }
    const std::size_t width = std::max<std::size_t>(nodes.size(), kNodesInARow);
    return element(
        R"(div class="band-row")",
        {element(
             fmt::format(R"(span class="host" title="{}")", text(nodes.front().front()->host).html),
             {text(fmt::format("from node {}", first_node))}),
         element(
             fmt::format(
                 R"(svg viewBox="0 0 {} {}" style="height:{:.2f}rem" preserveAspectRatio="none" role="img")",
                 width, height, 0.35 * static_cast<double>(std::min<std::size_t>(height, 64))),
             {drawn})});
}

Markup raster(const std::set<int>& failed, const Nodes& nodes) {
    Markup bands;
    for (std::size_t first = 0; first < nodes.size(); first += kNodesInARow) {
        const std::size_t count = std::min(kNodesInARow, nodes.size() - first);
        bands += raster_band(failed, std::span(nodes).subspan(first, count), first);
    }
    return element("figure",
                   {element("figcaption", {text("Groups on the nodes")}),
                    note(fmt::format(
                        "Each column is a node, {} per row; each cell is a rank. Adjacent cells of "
                        "one colour are one group. Failed groups are black, on dark pages white.",
                        kNodesInARow)),
                    element(R"(div class="raster")", {bands})});
}

Markup rank_map(const RunRecord& record) {
    const TopologyRecord& topology = record.topology;
    std::map<int, std::vector<const PlaceRecord*>> by_node;
    for (const PlaceRecord& place : topology.map) by_node[place.node].push_back(&place);
    Nodes nodes;
    for (auto& [node, places] : by_node) {
        std::ranges::stable_sort(places, {}, &PlaceRecord::local_rank);
        nodes.push_back(std::move(places));
    }
    if (nodes.empty()) return note("The record has no placement of the ranks.");
    const bool shows_numbers = topology.map.size() <= kRanksWithNumbers;
    std::set<int> failed;
    for (const GroupRecord& group : record.work.groups)
        if (has_failed(group)) failed.insert(group.group);
    return (shows_numbers ? rank_cells(failed, nodes) : raster(failed, nodes)) +
           placement_table(topology);
}

std::vector<Markup> cells_of_group(const RunRecord& record, std::size_t index) {
    const GroupRecord& group = record.work.groups[index];
    const auto& members = record.quality.members;
    return row(group.group, group.ranks, format_count(group.samples_trained),
               format_count(group.iterations), number(group.training_seconds, "{:.2f}"),
               number(group.images_per_second, "{:.2f}"), flops_text(group.flops),
               number(group.final_training_loss, "{:.4f}"),
               has_failed(group)
                   ? element("strong", {text("failed")})
                   : text(quality_text(index < members.size() ? members[index] : Quantity{})));
}

std::vector<Markup> cells_of_ensemble(const RunRecord& record) {
    int ranks = 0;
    for (const GroupRecord& group : record.work.groups)
        ranks += has_failed(group) ? 0 : group.ranks;
    return row("ensemble", ranks, format_count(record.work.samples_trained),
               format_count(record.work.iterations), number(record.time.training_seconds, "{:.2f}"),
               number(record.throughput.images_per_second, "{:.2f}"),
               flops_text(record.scores.flops), "", quality_text(record.quality.ensemble));
}

Markup table_of_groups(const RunRecord& record) {
    Table groups{.caption = "Base models, one per group",
                 .columns = {left("group"), "ranks", "samples", "steps", "seconds", "images/s",
                             "FLOPS", "loss", "quality"}};
    for (std::size_t index = 0; index < record.work.groups.size(); ++index) {
        groups.rows.push_back(cells_of_group(record, index));
    }
    groups.totals.push_back(cells_of_ensemble(record));
    return table(groups) +
           note(
               fmt::format("samples: total over all epochs; FLOPS: training operations per second, "
                           "counted by {}; loss: mean over the last epoch; quality: {} on the "
                           "test data with the weights of the {}.",
                           ledger_text(record.flops.convention), metric_name(record.quality.metric),
                           record.search ? "best trial" : "last epoch"));
}

Markup failures(const RunRecord& record) {
    std::vector<std::string> lines;
    for (const GroupRecord& group : record.work.groups) {
        if (has_failed(group))
            lines.push_back(fmt::format("Group {}: {}", group.group, group.failure));
    }
    if (lines.empty()) return {};
    const std::string title =
        fmt::format("{} of {} groups failed", lines.size(), record.work.groups.size());
    return element("h3", {text(title)}) + reasons(lines, kUnfoldedFailures, "more");
}

/// The audits of each group, which check that its ranks trained one model.
Markup audits(const RunRecord& record) {
    Table audits{
        .caption = "Audits, which compare the replicas of each group, and final models",
        .columns = {left("group"), "passed", left("differed"), left("SHA-256 of the model")},
        .unfolded = kUnfoldedGroups};
    for (std::size_t index = 0; index < record.work.groups.size(); ++index) {
        const GroupRecord& group = record.work.groups[index];
        std::string differed = record.parallel.data_degree > 1 ? "never" : "no replica to compare";
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

Markup health_of_gpus(const RunRecord& record) {
    Table gpus{.caption = "GPU health during training, from the driver",
               .columns = {"rank", left("host"), left("slowed by"), "share of readings",
                           "corrected memory errors", left("uncorrected errors and Xids")},
               .unfolded = kUnfoldedGroups};
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
