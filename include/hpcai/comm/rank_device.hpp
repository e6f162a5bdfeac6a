// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {

/// Facts that decide whether NCCL can all-reduce over the GPUs of some ranks.
struct RankDevice {
    std::string host;      // for messages
    std::string uuid;      // of the GPU or its partition, unique among all hosts
    int nccl_version = 0;  // NCCL's number, 22809 for 2.28.9; 0: this rank has none
};

/// Returns the devices of all ranks, in order. Texts are truncated to 255 bytes. Collective.
std::vector<RankDevice> gather_rank_devices(Communicator& ranks, const RankDevice& mine);

/// Returns why NCCL cannot reduce over these ranks, in one line; nothing if it can. NCCL needs a
/// GPU for each rank and the same version on all. The answer depends only on the list.
std::optional<std::string> obstacle_to_nccl(std::span<const RankDevice> ranks);

}  // namespace hpcai::comm
