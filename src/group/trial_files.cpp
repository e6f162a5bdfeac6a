// SPDX-License-Identifier: Apache-2.0
#include "trial_files.hpp"

#include <filesystem>
#include <system_error>

#include <hpcai/results/result_layout.hpp>
#include <hpcai/search/proposal.hpp>
#include <hpcai/storage/file.hpp>
#include <hpcai/storage/npy.hpp>
#include <hpcai/training/weights_file.hpp>
#include <hpcai/verification/search.hpp>

namespace hpcai::group {
namespace {

/// Number of a group's newest trials whose weights are kept. It is twice that of possible parents,
/// because trials may have failed and other groups may not have seen the newest ones.
constexpr int kKeptWeights = 2 * search::Settings{}.population;

}  // namespace

void store_trial(const GroupTraining& training, const TrialRun& run, const graph::Graph& root,
                 FinishedTrial& trial) {
    const std::filesystem::path& output = training.context.output;
    const int group = training.context.place.group;
    Model& model = *training.state.model;
    const std::filesystem::path weights = results::trial_weights(output, group, trial.sequence);
    storage::make_folder_durably(weights.parent_path());
    training::write_weights(weights, model.graph(), model.store(), run.steps());
    storage::write_npy(results::trial_classes(output, group, trial.sequence),
                       std::span<const std::int32_t>(run.classes()), {std::ssize(run.classes())});
    trial.digest = training::training_digest(model.graph(), model.store());
    trial.flops = verification::sample_flops(morphs::apply_all(root, model.edits()));
}

void remove_weights(const context::RunContext& context, const search::History& own, int sequence) {
    const bool may_be_parent = sequence + kKeptWeights >= std::ssize(own.trials());
    if (sequence < 0 || may_be_parent || sequence == verification::best_trial(own)) return;
    std::error_code error;
    std::filesystem::remove(results::trial_weights(context.output, context.place.group, sequence),
                            error);
}

void remove_oldest_weights(const context::RunContext& context, const search::History& own) {
    remove_weights(context, own, static_cast<int>(std::ssize(own.trials())) - kKeptWeights - 1);
}

}  // namespace hpcai::group
