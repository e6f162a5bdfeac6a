// SPDX-License-Identifier: Apache-2.0
#include "gather_results.hpp"

#include <span>
#include <string>

#include <hpcai/records/json.hpp>

namespace hpcai::group {
namespace {

constexpr int kTag = 8197;  // beside that of traces

}  // namespace

std::vector<GroupResult> gather_results(comm::Communicator& group, const GroupResult& mine) {
    const std::string text =
        group.rank() == 0 || mine == GroupResult{} ? "" : records::to_json(mine);
    const std::size_t size = text.size();
    std::vector<std::size_t> sizes(static_cast<std::size_t>(group.size()));
    group.all_gather(std::as_bytes(std::span(&size, 1)), std::as_writable_bytes(std::span(sizes)));
    if (group.rank() != 0) {
        if (size > 0) group.send(std::as_bytes(std::span(text)), 0, kTag);
        return {};
    }
    std::vector<GroupResult> others;
    for (int rank = 1; rank < group.size(); ++rank) {
        std::string other(sizes[rank], ' ');
        if (other.empty()) continue;
        group.receive(std::as_writable_bytes(std::span(other)), rank, kTag);
        others.push_back(records::from_json<GroupResult>(other, "record.json"));
    }
    return others;
}

}  // namespace hpcai::group
