// SPDX-License-Identifier: Apache-2.0
#include "launch_check.hpp"

#include <vector>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/launch/doctor_findings.hpp>
#include <hpcai/launch/environment.hpp>

namespace hpcai::launch {

std::string check_programs(comm::StartUp& start_up) {
    const std::string mine = binary_digest();
    comm::Communicator& everyone = start_up.everyone();
    const auto programs = comm::all_gather_strings(everyone, mine);
    const auto libraries = comm::all_gather_strings(everyone, comm::MpiWorld::library_version());
    std::vector<RankHealth> ranks(programs.size());
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
        ranks[rank].host = start_up.hostnames()[rank];
        ranks[rank].program = programs[rank];
        ranks[rank].mpi = libraries[rank];
    }
    const Finding finding = examine_program(ranks);
    require(!finding.is_wrong, finding.code, "{}; {}", finding.text, finding.remedy);
    return mine;
}

}  // namespace hpcai::launch
