// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/comm/rank_device.hpp>

namespace hpcai::comm {

namespace {

/// RankDevice as it travels.
struct Message {
    std::array<char, 256> host{};  // texts end with a zero
    std::array<char, 64> uuid{};
    std::int32_t nccl_version = 0;
};

template <std::size_t N>
void write(std::array<char, N>& to, std::string_view text) {
    std::ranges::copy(text.substr(0, N - 1), to.begin());
}

std::string version_text(int nccl_version) {
    if (nccl_version == 0) return "no NCCL";
    return fmt::format("NCCL {}.{}.{}", nccl_version / 10000, nccl_version / 100 % 100,
                       nccl_version % 100);
}

/// The first rank with a GPU of an earlier one, and that one.
std::optional<std::pair<std::size_t, std::size_t>> first_sharers(
    std::span<const RankDevice> ranks) {
    std::map<std::string_view, std::size_t> owners;
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        const auto [owner, is_new] = owners.try_emplace(ranks[rank].uuid, rank);
        if (!is_new) return std::pair(owner->second, rank);
    }
    return std::nullopt;
}

}  // namespace

std::vector<RankDevice> gather_rank_devices(Communicator& ranks, const RankDevice& mine) {
    Message message;
    write(message.host, mine.host);
    write(message.uuid, mine.uuid);
    message.nccl_version = mine.nccl_version;
    std::vector<RankDevice> devices;
    for (const Message& one : all_gather(ranks, message)) {
        devices.push_back({one.host.data(), one.uuid.data(), one.nccl_version});
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
    if (const auto sharers = first_sharers(ranks)) {
        const auto [first, second] = *sharers;
        return fmt::format("ranks {} and {} share {} on {}, and NCCL wants a GPU for each rank",
                           first, second, ranks[first].uuid, ranks[first].host);
    }
    return std::nullopt;
}

}  // namespace hpcai::comm
