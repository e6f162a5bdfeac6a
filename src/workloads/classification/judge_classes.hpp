// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/evaluation/member_bootstrap.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/workloads/probabilities.hpp>
#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

/// Computes Top-1 and Top-5 of one member. Throws as evaluation::top_k does.
void judge_classes(const Probabilities& predicted, GroupResult& result);

/// Computes the ensemble's quality and its interval, without the out-of-bag quality. Throws as
/// evaluation::top_k does.
void judge_class_vote(const VotedProbabilities& predicted, QualityRecord& quality);

/// Makes the bootstrap of `members` members that vote on `samples` test samples.
evaluation::MemberBootstrap member_bootstrap_of(const config::Config& config, int members,
                                                std::int64_t samples);

/// Compares two ensembles by McNemar's test.
QualityComparison compare_classes(const ComparedResults& results);

}  // namespace hpcai::workloads
