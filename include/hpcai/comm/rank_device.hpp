// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {

/// Facts about one rank that decide whether NCCL can all-reduce over the GPUs of a group.
struct RankDevice {
    std::string host;      // for messages
    std::string uuid;      // of the GPU or its partition, unique among all hosts
    int nccl_version = 0;  // NCCL's version number, 22809 for 2.28.9; 0: this rank has no NCCL
};

/// Returns the devices of all ranks, by rank. Collective.
std::vector<RankDevice> gather_rank_devices(Communicator& ranks, const RankDevice& mine);

/// Returns, in one line, why NCCL cannot reduce over these ranks; empty if it can. Each rank needs
/// its own GPU, and all ranks the same version of NCCL. Equal lists give equal answers.
std::optional<std::string> obstacle_to_nccl(std::span<const RankDevice> ranks);

}  // namespace hpcai::comm
