// SPDX-License-Identifier: Apache-2.0
#include <map>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/rank_device.hpp>

namespace hpcai::comm {
namespace {

std::string version_text(int nccl_version) {
    if (nccl_version == 0) return "no NCCL";
    return fmt::format("NCCL {}.{}.{}", nccl_version / 10000, nccl_version / 100 % 100,
                       nccl_version % 100);
}

}  // namespace

std::vector<RankDevice> gather_rank_devices(Communicator& ranks, const RankDevice& mine) {
    const std::vector<std::string> hosts = all_gather_strings(ranks, mine.host);
    const std::vector<std::string> uuids = all_gather_strings(ranks, mine.uuid);
    const std::vector<int> versions = all_gather(ranks, mine.nccl_version);
    std::vector<RankDevice> devices;
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
        devices.push_back({hosts[rank], uuids[rank], versions[rank]});
    }
    return devices;
}

std::optional<std::string> obstacle_to_nccl(std::span<const RankDevice> ranks) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const int version = ranks[rank].nccl_version;
        if (version != 0 && version == ranks[0].nccl_version) continue;
        if (rank == 0) return fmt::format("rank 0 of the group on {} has no NCCL", ranks[0].host);
        return fmt::format("rank {} on {} has {} and rank 0 on {} has {}", rank, ranks[rank].host,
                           version_text(version), ranks[0].host,
                           version_text(ranks[0].nccl_version));
    }
    std::map<std::string_view, std::size_t> owners;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto [owner, is_new] = owners.try_emplace(ranks[rank].uuid, rank);
        if (is_new) continue;
        return fmt::format("ranks {} and {} share {} on {}, but NCCL needs a GPU for each rank",
                           owner->second, rank, owner->first, ranks[owner->second].host);
    }
    return std::nullopt;
}

}  // namespace hpcai::comm
