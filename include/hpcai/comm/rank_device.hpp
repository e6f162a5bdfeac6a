// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hpcai/comm/communicator.hpp>

namespace hpcai::comm {

/// What decides whether the GPUs of some ranks can sum among themselves.
struct RankDevice {
    std::string host;      // up to 255 bytes, for people
    std::string uuid;      // of the GPU or its partition; no other has it on any host; up to 63
    int nccl_version = 0;  // as NCCL tells it, 22809 is 2.28.9; 0: this rank has none
};

/// Returns the devices of all ranks, in order. Longer texts are cut. Collective.
std::vector<RankDevice> gather_rank_devices(Communicator& ranks, const RankDevice& mine);

/// Why these ranks cannot sum by NCCL, which wants a GPU for each of them and one version, in a
/// line for people; nothing when they can. All ranks that ask about the same list get the same.
std::optional<std::string> obstacle_to_nccl(std::span<const RankDevice> ranks);

}  // namespace hpcai::comm
