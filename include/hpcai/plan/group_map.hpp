// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <hpcai/plan/parallelism_controller.hpp>

namespace hpcai::plan {

struct GroupMapSettings {
    std::vector<std::string> node_names = {};  // [node]; a node without a name is "node<number>"
    std::size_t max_lines = 16;                // of groups, after the heading; at least 2
};

/// Returns the map of groups to nodes as lines of text. Brackets contain RankPlace::node_rank:
///
///   2 groups x 4 ranks on 2 nodes
///   group 0: node001[0-3]
///   group 1: node001[4-5] node002[0-1]
///
/// Three or more neighbouring nodes with the same ranks are one entry, `node001..node016[0-7]`.
/// A line shows at most eight entries and the number of further ones. If there are more groups than
/// `max_lines`, neighbouring groups on the same number of nodes share a line, such as
/// `groups 0-12499: 8 ranks each on 1 node, node00000 .. node12499`. If these are still too many
/// lines, the lines in the middle are replaced by their number. The time is O(n) for n ranks.
std::string draw_group_map(const ParallelismController& controller,
                           const GroupMapSettings& settings);

/// Returns the line of one group in the map, without "group 0: ".
std::string describe_group(const ParallelismController& controller, int group,
                           const std::vector<std::string>& node_names);

}  // namespace hpcai::plan
