// SPDX-License-Identifier: Apache-2.0
#include "gather_results.hpp"

#include <string>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/records/json.hpp>

namespace hpcai::group {

std::vector<GroupResult> gather_results(comm::Communicator& group, const GroupResult& mine) {
    const std::string text =
        group.rank() == 0 || mine == GroupResult{} ? "" : records::to_json(mine);
    std::vector<GroupResult> others;
    for (const std::string& other : comm::gather_strings(group, text)) {
        if (other.empty()) continue;
        others.push_back(records::from_json<GroupResult>(other, "record.json"));
    }
    return others;
}

}  // namespace hpcai::group
