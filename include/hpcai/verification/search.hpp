// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

#include <hpcai/config/config.hpp>
#include <hpcai/records/group_record.hpp>
#include <hpcai/search/proposal.hpp>

/// Derives values from the configuration and histories of a search, in a run and in `verify`.
namespace hpcai::verification {

/// Names of the hyper-parameters that trials draw: keys of the section `training`.
inline constexpr const char* kLearningRate = "learning_rate";
inline constexpr const char* kWeightDecay = "weight_decay";

/// Returns what all proposals of the configured search have in common.
search::Basis search_basis(const config::Config& config);

/// The limits above which a proposal is refused.
struct ProposalLimits {
    double flops = 0;                   // per training sample
    std::int64_t parameter_bytes = 0;   // per parameter: with gradient, optimizer states and copies
    std::int64_t activation_bytes = 0;  // per number of an activation, for all samples of a rank
    std::int64_t configured_memory = 0;  // search.max_memory_gb in bytes; 0: the history's

    /// Returns the bytes of parameters, gradients, optimizer states, working copies and all
    /// activations on a rank. Inputs, buffers of messages and scratch memory are left out.
    /// `graph` has batch 1 and is not fused. The maximum of std::int64_t if it is exceeded.
    std::int64_t memory_bytes(const graph::Graph& graph) const;
};

/// `ranks` is P_degree, `precision` the resolved training.precision.
ProposalLimits proposal_limits(const config::Config& config, const graph::Graph& root, int ranks,
                               std::string_view precision);

/// Returns the number of the first draw of a proposal: settings.max_draws if the root exceeds the
/// memory, because edits only add to it; else 0.
int first_draw(const ProposalLimits& limits, const search::Basis& basis,
               const search::Request& request);

/// Returns the key of the limit that refuses a proposal; empty if none does. The memory refuses
/// neither the first trial nor, after settings.max_draws, the parent's network, which may be
/// another group's: such a trial is built and fails if memory does not suffice.
std::string_view refused_by(const ProposalLimits& limits, const search::Basis& basis,
                            const ProposedTrial& trial);

/// Returns `config` with the epochs and hyper-parameters of a trial. Throws Error(data) for an
/// unknown hyper-parameter.
config::Config trial_config(const config::Config& config, const ProposedTrial& trial);

/// Returns the FLOPs of a sample in each ledger. `graph` has batch 1.
std::vector<SampleFlops> sample_flops(const graph::Graph& graph);

/// Returns the FLOPs in the ledger of the scores. Throws Error(data) if they are missing.
const SampleFlops& official_flops(const std::vector<SampleFlops>& flops);

/// Files of a result about the held-out samples: their labels, s32 of shape (samples), and their
/// names, one per line.
inline constexpr const char* kHoldOutLabels = "evaluation/hold_out.npy";
inline constexpr const char* kHoldOutNames = "evaluation/hold_out.txt";

/// Returns the number (`sequence`) of the completed trial with the highest accuracy, the first of
/// equal ones. Throws Error(data) if no trial has completed.
int best_trial(const search::History& history);

inline constexpr int kMaxFailures = 20;
/// Returns why a group's search ends early: it has more than kMaxFailures trials, and the last
/// kMaxFailures trials failed. Empty if it does not end early.
std::string end_reason(const search::History& history);

/// Returns the record of a group's search, from its history.
GroupSearchRecord describe_search(const search::History& history);

/// Returns the record of a run's search, from the histories of the finished groups; at least one.
SearchRecord derive_search(std::span<const search::History* const> members,
                           std::int64_t hold_out_samples);

/// Calls derive_search() for the finished groups whose result has `search`; returns nothing if
/// there are none. `histories` has the histories of all groups.
std::optional<SearchRecord> search_of_members(const std::vector<GroupResult>& groups,
                                              std::span<const search::History> histories,
                                              std::int64_t hold_out_samples);

}  // namespace hpcai::verification
