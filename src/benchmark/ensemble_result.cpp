// SPDX-License-Identifier: Apache-2.0
#include "ensemble_result.hpp"

#include <hpcai/base/clock.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/group/group_outcome.hpp>
#include <hpcai/records/json.hpp>

namespace hpcai::benchmark {

EnsembleResult combine_members(const workloads::Evaluator& evaluator,
                               const group::GroupOutcome& mine, comm::Communicator& leaders) {
    const Stopwatch watch;
    EnsembleResult ensemble;
    for (const std::string& text : comm::gather_strings(leaders, records::to_json(mine.result))) {
        ensemble.score.members.push_back(records::from_json<GroupResult>(text, "record.json"));
    }
    ensemble.predictions = evaluator.combine(mine.predictions, leaders, ensemble.score.quality);
    ensemble.score.seconds = watch.seconds();
    return ensemble;
}

}  // namespace hpcai::benchmark
