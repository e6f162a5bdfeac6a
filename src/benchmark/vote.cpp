// SPDX-License-Identifier: Apache-2.0
#include "vote.hpp"

#include <hpcai/base/clock.hpp>
#include <hpcai/report/json.hpp>

#include "group_outcome.hpp"
#include "rank_texts.hpp"

namespace hpcai::benchmark {

Vote hold_vote(const Workload& workload, const GroupOutcome& mine, comm::Communicator& leaders) {
    const Stopwatch watch;
    Vote vote;
    for (const std::string& text : collect_texts(leaders, report::to_json(mine.result))) {
        vote.members.push_back(report::group_from_json(text));
    }
    vote.predictions = workload.combine(mine, leaders, vote.quality);
    vote.seconds = watch.seconds();
    return vote;
}

}  // namespace hpcai::benchmark
