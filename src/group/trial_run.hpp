// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include <hpcai/base/error.hpp>
#include <hpcai/morphs/inherit.hpp>
#include <hpcai/records/trial_record.hpp>
#include <hpcai/training/trainer.hpp>

#include "epoch_source.hpp"
#include "group_training.hpp"
#include "search_checkpoints.hpp"

namespace hpcai::group {

/// Returns the `weights` of rank 0, which are those of `graph`. Collective.
morphs::Weights broadcast_weights(comm::Communicator& group, const graph::Graph& graph,
                                  morphs::Weights weights);

/// Returns 90 % of the bytes of the group's rank with the least memory. Ranks of a node share its
/// memory or, with run.level custom, a GPU. Collective.
std::int64_t smallest_memory(const GroupTraining& training);

/// Returns the message of the caught `error` if other models can still be trained: the training has
/// diverged, or memory does not suffice and all ranks know it. Otherwise throws `error` again.
std::string failure_of_trial(const Error& error, bool is_only_rank);
/// Whether a trial may have caused the end of its launch, if the group ended with this error.
bool may_come_from_trial(const Error& error);

/// What a trial depends on.
struct TrialSetup {
    const ProposedTrial& proposed;
    std::int64_t steps_per_epoch = 0;
    std::int64_t earlier_steps = 0;  // of the group's earlier trials
    int earlier_epochs = 0;
    SearchCheckpoints& checkpoints;
    std::vector<training::Fault> faults;  // to inject, of all groups
};

/// Trains the model of one trial and evaluates it on the hold-out. Every rank has an object.
class TrialRun {
public:
    /// `training.state` has the model with its initial weights. All arguments outlive the object,
    /// which adds measurements to `trial`. Not collective.
    TrialRun(const GroupTraining& training, EpochSource& source, const TrialSetup& setup,
             FinishedTrial& trial);

    /// Trains an epoch, counted from 0, evaluates the model and adds both to `trial`. Collective;
    /// throws as Trainer::train_epoch() and predict().
    void train_epoch(int epoch);
    /// Averages running statistics, compares the replicas and adds epochs, audits and skipped steps
    /// to `record`. Returns the costs, without those of the source and the reducer. Collective.
    TrainingCosts finish(GroupRecord& record);

    std::int64_t steps() const { return trainer_.steps_done(); }
    std::int64_t buckets() const { return std::ssize(trainer_.buckets().ranges()); }
    /// The classes that the model predicted for the hold-out after the last epoch, at the leader.
    /// -1: the sample is not scored; -2: an output is NaN.
    const std::vector<std::int32_t>& classes() const { return classes_; }
    /// The bad samples of this rank's share of the hold-out in the last epoch's evaluation.
    const data::BadSampleReport& bad_samples() const { return bad_samples_; }

private:
    training::StepReport as_search_step(training::StepReport step) const;
    void evaluate();

    const GroupTraining& training_;
    EpochSource& source_;
    TrialSetup setup_;
    FinishedTrial& trial_;
    config::Config config_;
    training::Trainer trainer_;
    std::vector<double> epoch_seconds_;
    double mean_loss_ = 0;  // of the last epoch
    std::vector<std::int32_t> classes_;
    data::BadSampleReport bad_samples_;
};

}  // namespace hpcai::group
