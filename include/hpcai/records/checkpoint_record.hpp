// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <hpcai/records/record_fields.hpp>

namespace hpcai {

/// `rank-<group_rank>.done`: the marker that a rank writes after its checkpoint file is complete.
struct CheckpointMarker {
    std::string schema = "hpcai500-checkpoint/1";
    std::int64_t step = 0;  // steps done
    int group_rank = 0;
    int ranks = 1;              // size of the group
    std::string config_sha256;  // of the run's configuration
    std::int64_t program = 0;   // identifies the launch that wrote the file; equal on all ranks
    std::int64_t bytes = 0;     // of the rank's file
    std::string sha256;         // of the rank's file
    HPCAI_RECORD(CheckpointMarker, schema, step, group_rank, ranks, config_sha256, program, bytes,
                 sha256);
};

}  // namespace hpcai
