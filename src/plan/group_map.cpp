// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/core.h>

#include <hpcai/base/text.hpp>
#include <hpcai/base/units.hpp>
#include <hpcai/plan/group_map.hpp>

namespace hpcai::plan {
namespace {

constexpr std::size_t kMaxEntries = 8;  // per line

std::string node_name(int node, const std::vector<std::string>& names) {
    const std::size_t index = node;
    return index < names.size() ? printable(names[index]) : fmt::format("node{}", node);
}

/// The same range of ranks on one or more consecutive nodes.
struct Entry {
    int first_node, last_node;
    int first_rank, last_rank;  // within the node
};

std::vector<Entry> entries_of(const ParallelismController& controller, int group) {
    std::vector<Entry> entries;
    int group_rank = 0;
    for (const NodeShare& share : controller.shares_of(group)) {
        // A group's ranks on a node are consecutive.
        const int first = controller.place(controller.world_rank_of(group, group_rank)).node_rank;
        const Entry entry{share.node, share.node, first, first + share.ranks - 1};
        group_rank += share.ranks;
        const bool continues = !entries.empty() &&
                               entries.back().last_node + 1 == entry.first_node &&
                               entries.back().first_rank == entry.first_rank &&
                               entries.back().last_rank == entry.last_rank;
        if (continues) {
            entries.back().last_node = entry.last_node;
        } else {
            entries.push_back(entry);
        }
    }
    return entries;
}

std::string entry_text(const Entry& entry, const std::vector<std::string>& names) {
    const std::string ranks = entry.first_rank == entry.last_rank
                                  ? fmt::format("[{}]", entry.first_rank)
                                  : fmt::format("[{}-{}]", entry.first_rank, entry.last_rank);
    const std::string first = node_name(entry.first_node, names);
    const std::string last = node_name(entry.last_node, names);
    switch (entry.last_node - entry.first_node) {
        case 0:
            return first + ranks;
        case 1:
            return fmt::format("{0}{2} {1}{2}", first, last, ranks);
        default:
            return fmt::format("{}..{}{}", first, last, ranks);
    }
}

/// Neighbouring groups on the same number of nodes; only the first and last node are named.
struct GroupRange {
    int first_group, last_group;
    std::size_t nodes;  // of each group
    int first_node, last_node;
};

std::vector<GroupRange> group_ranges(const ParallelismController& controller) {
    std::vector<GroupRange> ranges;
    for (int group = 0; group < controller.layout().groups; ++group) {
        const std::vector<NodeShare> shares = controller.shares_of(group);
        if (!ranges.empty() && ranges.back().nodes == shares.size()) {
            ranges.back().last_group = group;
            ranges.back().last_node = std::max(ranges.back().last_node, shares.back().node);
        } else {
            ranges.push_back(
                {group, group, shares.size(), shares.front().node, shares.back().node});
        }
    }
    return ranges;
}

std::string range_text(const GroupRange& range, int degree, const std::vector<std::string>& names) {
    std::string text = range.first_group == range.last_group
                           ? fmt::format("group {}: ", range.first_group)
                           : fmt::format("groups {}-{}: ", range.first_group, range.last_group);
    text += counted(degree, "rank");
    text += range.first_group == range.last_group ? " on " : " each on ";
    text += counted(range.nodes, "node") + ", " + node_name(range.first_node, names);
    if (range.last_node != range.first_node) text += " .. " + node_name(range.last_node, names);
    return text;
}

/// Joins the lines, without those in the middle if there are more than `max_lines`.
std::string join_shortened(const std::vector<std::string>& lines, std::size_t max_lines) {
    const std::size_t omitted = lines.size() > max_lines ? lines.size() - max_lines : 0;
    const std::size_t head = (lines.size() - omitted + 1) / 2;
    std::string text;
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (i == head && omitted > 0) text += "... " + counted(omitted, "more line") + " ...\n";
        if (i >= head && i < head + omitted) continue;
        text += lines[i] + "\n";
    }
    return text;
}

}  // namespace

std::string describe_group(const ParallelismController& controller, int group,
                           const std::vector<std::string>& node_names) {
    const std::vector<Entry> entries = entries_of(controller, group);
    std::string text;
    for (std::size_t i = 0; i < std::min(entries.size(), kMaxEntries); ++i) {
        if (i > 0) text += ' ';
        text += entry_text(entries[i], node_names);
    }
    if (entries.size() > kMaxEntries) {
        text += fmt::format(" and {} more", entries.size() - kMaxEntries);
    }
    return text;
}

std::string draw_group_map(const ParallelismController& controller,
                           const GroupMapSettings& settings) {
    const Layout& layout = controller.layout();
    std::vector<std::string> lines;
    if (static_cast<std::size_t>(layout.groups) <= settings.max_lines) {
        for (int group = 0; group < layout.groups; ++group) {
            lines.push_back(fmt::format("group {}: {}", group,
                                        describe_group(controller, group, settings.node_names)));
        }
    } else {
        for (const GroupRange& range : group_ranges(controller)) {
            lines.push_back(range_text(range, layout.degree, settings.node_names));
        }
    }
    const LayoutSummary summary = controller.summary();
    return fmt::format("{} x {} on {}\n", counted(layout.groups, "group"),
                       counted(layout.degree, "rank"), counted(summary.nodes, "node")) +
           join_shortened(lines, std::max<std::size_t>(settings.max_lines, 2));
}

}  // namespace hpcai::plan
