// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hwloc.h>

#include <hpcai/device/numa.hpp>

namespace hpcai::device {
namespace {

int nodes_inside(hwloc_topology_t topology, hwloc_const_bitmap_t cores) {
    int nodes = 0;
    hwloc_obj_t node = nullptr;
    while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
        nodes += hwloc_bitmap_intersects(node->cpuset, cores) != 0 ? 1 : 0;
    }
    return nodes;
}

}  // namespace

NumaNodes count_numa_nodes() {
    NumaNodes nodes;
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) return nodes;
    if (hwloc_topology_load(topology) == 0) {
        nodes.machine =
            std::max(nodes_inside(topology, hwloc_topology_get_topology_cpuset(topology)), 1);
        nodes.allowed = nodes.machine;
        hwloc_bitmap_t bound = hwloc_bitmap_alloc();
        if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0) {
            nodes.allowed = std::clamp(nodes_inside(topology, bound), 1, nodes.machine);
        }
        hwloc_bitmap_free(bound);
    }
    hwloc_topology_destroy(topology);
    return nodes;
}

}  // namespace hpcai::device
