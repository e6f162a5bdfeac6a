// SPDX-License-Identifier: Apache-2.0
#include "ensemble_result.hpp"

#include <hpcai/base/clock.hpp>
#include <hpcai/context/rank_strings.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/report/json.hpp>

namespace hpcai::benchmark {

EnsembleResult combine_members(const group::Workload& workload, const group::GroupOutcome& mine,
                               comm::Communicator& leaders) {
    const Stopwatch watch;
    EnsembleResult ensemble;
    for (const std::string& text : context::gather_strings(leaders, report::to_json(mine.result))) {
        ensemble.score.members.push_back(report::group_from_json(text));
    }
    ensemble.predictions = workload.combine(mine, leaders, ensemble.score.quality);
    ensemble.score.seconds = watch.seconds();
    return ensemble;
}

}  // namespace hpcai::benchmark
