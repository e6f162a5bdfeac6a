// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include <hpcai/graph/graph.hpp>
#include <hpcai/search/edits.hpp>
#include <hpcai/search/history.hpp>
#include <hpcai/search/settings.hpp>

namespace hpcai::search {

/// What all proposals of a run have in common.
struct Basis {
    Settings settings;
    std::uint64_t seed = 0;  // of the run
    graph::Graph root;       // unfused
};

/// What a proposal depends on, besides the basis and the histories; ProposedTrial stores these.
struct Request {
    int group = 0;
    int sequence = 0;
    int draw = 0;                    // increased by one when the trainer has refused a proposal
    std::vector<TrialId> missing;    // trials whose weights are gone
    std::vector<std::int64_t> seen;  // [group] number of lines to use; of the own group all lines
    std::int64_t memory_bytes = 0;   // only stored: the trainer refuses proposals by it
};

/// Returns the request of a stored proposal, with which propose() computes it again.
Request request_of(int group, const ProposedTrial& trial);

/// Returns the trial (group, sequence): parent, edit script of the child, hyper-parameters, and the
/// request; `previous` is empty. A pure function of its arguments: it reads no lines beyond
/// request.seen. Sequence 0 has the root's graph, without edits. Without completed trials the
/// parent is the root. A parent whose graph allows no morph has a child with the same graph. From
/// draw settings.max_draws on, the child has the graph of its parent, which no trainer refuses.
/// Throws Error(data) if the lines seen have edits that do not apply to the root, and
/// Error(internal) if request.seen does not match the histories.
///
/// With ParentRule::bayesian, a child may have several morphs more than its parent. Drawn
/// hyper-parameters may differ in the last bits between C libraries; see has_same_proposal().
ProposedTrial propose(const Basis& basis, const Request& request,
                      std::span<const History* const> histories);
ProposedTrial propose(const Basis& basis, const Request& request,
                      std::span<const History> histories);

/// Throws Error(data), whose message begins with `at`, if the trial has other hyper-parameters than
/// the search or impossible values.
void check_hyper_parameters(const Settings& settings, const ProposedTrial& trial,
                            std::string_view at);

/// Whether two proposals are equal; hyper-parameters up to a relative difference of 1e-9. Ignores
/// `previous`.
bool has_same_proposal(const ProposedTrial& a, const ProposedTrial& b);

/// Computes every proposal again from the lines that it has seen; the time is quadratic in their
/// number. Throws Error(mismatch) naming the first line whose proposal differs, Error(data) naming
/// a line with other hyper-parameters than the search has, and the errors of check_histories().
void check_proposals(const Basis& basis, std::span<const History> histories);

}  // namespace hpcai::search
