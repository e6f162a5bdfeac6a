// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace hpcai::device {

/// NUMA nodes of the machine, and those with cores that this process may run on (hwloc). At
/// least 1.
struct NumaNodes {
    int machine = 1;
    int allowed = 1;
};
NumaNodes count_numa_nodes();

}  // namespace hpcai::device
