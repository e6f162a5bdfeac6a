// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/probabilities.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

/// Top-1 and Top-5 of one member. Throws as evaluation::top_k does.
void judge_classes(const Probabilities& said, GroupResult& result);

/// The ensemble's quality with its interval; out-of-bag it is unknown yet. Throws likewise.
void judge_class_vote(const VotedProbabilities& said, QualityRecord& quality);

/// Draws of so many members that vote on so many test samples.
evaluation::MemberBootstrap member_bootstrap_of(const config::Config& config, int members,
                                                std::int64_t samples);

/// McNemar's test of two ensembles.
QualityComparison compare_classes(const ComparedResults& results);

}  // namespace hpcai::workloads
