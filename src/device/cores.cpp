// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include <hwloc.h>

#include <hpcai/device/cpu_device.hpp>

namespace hpcai::device {
namespace {

/// Calls body(topology, bound), where `bound` has the hardware threads on which this process may
/// run, or is null if they are unknown. Does nothing if hwloc cannot read the topology.
void with_topology(const auto& body) {
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) return;
    if (hwloc_topology_load(topology) == 0) {
        hwloc_bitmap_t bound = hwloc_bitmap_alloc();
        const bool is_known = hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0;
        body(topology, is_known ? bound : nullptr);
        hwloc_bitmap_free(bound);
    }
    hwloc_topology_destroy(topology);
}

/// Returns the FNV-1a hash of the set's text form.
std::uint64_t hash_of(hwloc_const_bitmap_t set) {
    char* text = nullptr;
    hwloc_bitmap_asprintf(&text, set);
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char* at = text; at != nullptr && *at != 0; ++at) {
        hash = (hash ^ static_cast<unsigned char>(*at)) * 1099511628211ULL;
    }
    std::free(text);
    return hash;
}

/// Returns the number of cores or NUMA nodes that have a hardware thread in `threads`, at least 1.
int count_intersecting(hwloc_topology_t topology, hwloc_obj_type_t type,
                       hwloc_const_bitmap_t threads) {
    int count = 0;
    hwloc_obj_t object = nullptr;
    while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
        count += hwloc_bitmap_intersects(object->cpuset, threads) != 0 ? 1 : 0;
    }
    return std::max(count, 1);
}

}  // namespace

Cores count_cores() {
    Cores cores;
    with_topology([&](hwloc_topology_t topology, hwloc_const_bitmap_t bound) {
        cores.machine = std::max(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE), 1);
        cores.allowed = cores.machine;
        if (bound == nullptr) return;
        cores.allowed = count_intersecting(topology, HWLOC_OBJ_CORE, bound);
        cores.allowed_set = hash_of(bound);
    });
    return cores;
}

NumaNodes count_numa_nodes() {
    NumaNodes nodes;
    with_topology([&](hwloc_topology_t topology, hwloc_const_bitmap_t bound) {
        const hwloc_const_bitmap_t all = hwloc_topology_get_topology_cpuset(topology);
        nodes.machine = count_intersecting(topology, HWLOC_OBJ_NUMANODE, all);
        nodes.allowed =
            count_intersecting(topology, HWLOC_OBJ_NUMANODE, bound == nullptr ? all : bound);
    });
    return nodes;
}

int threads_for_rank(int requested, const Cores& cores, int sharing_ranks) {
    if (requested > 0) return requested;
    return std::max(1, cores.allowed / std::max(1, sharing_ranks));
}

}  // namespace hpcai::device
