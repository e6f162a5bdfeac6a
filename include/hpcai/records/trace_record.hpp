// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

/// What a rank did in the steps that `run.trace` shows. Plain data; `report` writes it.
namespace hpcai {

enum class TraceLane {
    steps,    // and their phases, one inside the other
    kernels,  // one after the other
    sums      // of gradients, several at a time
};

struct TraceEvent {
    TraceLane lane = TraceLane::steps;
    std::string name;          // "step 4", "forward", of a node, "bucket 0"
    std::string pass;          // of a kernel, else empty
    double begin_seconds = 0;  // on the rank's clock
    double end_seconds = 0;
};

struct RankTrace {
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::vector<TraceEvent> events;
};

}  // namespace hpcai
