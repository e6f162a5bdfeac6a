// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/base/log.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/membership_agreement.hpp>
#include <hpcai/context/run_context.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/evaluator.hpp>

/// Groups that an earlier launch of the run completed.
namespace hpcai::group {

/// The outcome of a group's training on one rank. Only the leader has predictions.
struct GroupOutcome {
    comm::GroupStatus status;
    GroupResult result;
    workloads::MemberPredictions predictions;
    bool has_lost_leader = false;   // the group's first rank does not answer
    bool is_acting_leader = false;  // the leader is lost, and this rank is the first that answers
    ProgressState end = ProgressState::failed;
    double stop_seconds = 0;  // from the last step until the group had stopped; 0: no stop
};

/// Adds the stored predictions of a completed group to `outcome`, which has the group's result.
/// Predictions of out-of-bag samples are not stored. If bad test samples were skipped, decodes all
/// test samples to find them, on data.decode_threads threads (0: `threads`). Throws Error(data)
/// naming a file that does not fit. The record does not fit if its quality is not that of the
/// predictions, as after a change of the test samples.
void load_predictions(const context::RunContext& context, const data::SampleSets& samples,
                      int threads, GroupOutcome& outcome);

/// Returns the outcome of this rank's group, with its predictions, if an earlier launch completed
/// it. Out-of-bag samples are predicted again from the stored weights. Otherwise returns nothing,
/// and the leader logs why. Collective in the group; a failure on one rank is thrown on all.
std::optional<GroupOutcome> load_completed_group(const context::RunContext& context,
                                                 const context::Resources& resources,
                                                 TrainingState& state, comm::Communicator& group,
                                                 Logger& log);

/// Predicts the training samples outside of the model's bootstrap sample. Collective in the group.
void predict_out_of_bag(const context::RunContext& context, const context::Resources& resources,
                        Model& model, comm::Communicator& group, GroupOutcome& outcome);

}  // namespace hpcai::group
