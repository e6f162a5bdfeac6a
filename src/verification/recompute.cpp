// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include <hpcai/config/keys.hpp>
#include <hpcai/config/writer.hpp>
#include <hpcai/verification/derive.hpp>

#include "checks.hpp"

namespace hpcai::verification {
namespace {

/// Recomputes the ceiling from the measured rates.
void recompute_ceiling(const Claim& claim, RunRecord& record) {
    CeilingRecord& ceiling = record.roofline;
    const std::string& from = claim.config.run.roofline;
    ceiling.source = from == "measure" ? "measured before training" : from;
    ceiling.precision = record.workload.precision;
    std::optional<double> larger;
    for (const Quantity& rate : {ceiling.gemm_flops, ceiling.model_convolution_flops}) {
        if (rate.value) larger = std::max(larger.value_or(0), *rate.value);
    }
    ceiling.ceiling_flops = value_or_reason(larger, ceiling.ceiling_flops.reason);
}

void recompute_workload(const Claim& claim, RunRecord& record) {
    const WorkloadRecord& stored = claim.record.workload;
    record.workload = describe_workload(claim.config);
    record.workload.precision = config::value_text(claim.config, "training.precision");
    if (record.workload.precision == "auto") record.workload.precision = stored.precision;
    record.workload.training_samples = stored.training_samples;
    record.workload.validation_samples = stored.validation_samples;
    record.workload.samples_sha256 = stored.samples_sha256;
    record.workload.data_disqualifications = stored.data_disqualifications;
    const config::DataConfig& data = claim.config.data;
    if (data.kind == config::DataKind::synthetic ||
        data.kind == config::DataKind::climate_synthetic) {
        record.workload.training_samples = data.synthetic_samples;
        record.workload.validation_samples = data.synthetic_validation_samples;
    }
}

/// Keeps stored scores that differ only by rounding, because the pow() of the machine that wrote
/// them may round differently.
void keep_rounded_scores(const Claim& claim, RunRecord& record) {
    constexpr double kRoundings = 1e-15;
    const ScoresRecord& stored = claim.record.scores;
    Quantity& penalty = record.scores.penalty_coefficient;
    if (penalty.value && stored.penalty_coefficient.value &&
        std::abs(*penalty.value - *stored.penalty_coefficient.value) <=
            kRoundings * std::abs(*penalty.value)) {
        penalty = stored.penalty_coefficient;
        if (record.scores.flops.value) {
            record.scores.vflops = {*record.scores.flops.value * *penalty.value, ""};
        }
    }
    const auto keep = [](const Quantity& old, Quantity& score) {
        const bool is_rounding =
            old.value && score.value &&
            std::abs(*old.value - *score.value) <= 2 * kRoundings * std::abs(*score.value);
        if (is_rounding) score = old;
    };
    keep(stored.vflops_interval.low, record.scores.vflops_interval.low);
    keep(stored.vflops_interval.high, record.scores.vflops_interval.high);
}

/// Recomputes the verdict. The exit codes of failed groups are not stored: a code is `invalid` if
/// the replicas diverged, and otherwise follows from the exit code of the run.
void recompute_verdict(const Claim& claim, const std::vector<GroupResult>& groups,
                       RunRecord& record) {
    VerdictFacts facts = facts_of(record, groups);
    const bool is_data = claim.record.verdict.exit_code == ExitCode::data;
    for (const GroupResult& group : groups) {
        if (group.record.failure.empty()) continue;
        const bool diverged = group.record.audit.diverged_at_step > 0;
        facts.failure_codes.push_back(diverged  ? ExitCode::invalid
                                      : is_data ? ExitCode::data
                                                : ExitCode::internal);
    }
    record.verdict = make_verdict(claim.config, facts);
}

}  // namespace

RunRecord recompute(const Claim& claim, const std::vector<GroupResult>& groups,
                    const QualityRecord& quality) {
    RunRecord record = claim.record;
    record.name = claim.config.run.name;
    record.config.text = config::to_json(claim.config);
    record.submission = describe_submission(claim.config);
    recompute_workload(claim, record);
    derive_topology(claim.controller, record.topology);
    record.parameters =
        summary_settings(claim.config, claim.controller.layout(), record.workload.precision);
    add_summary_facts(record.staging, facts_of(record, groups).bad_samples, record.parameters);
    recompute_ceiling(claim, record);
    record.flops = flops_of_model(claim.config);
    record.quality = quality;
    derive_results(claim.config, claim.controller, groups, record);
    keep_rounded_scores(claim, record);
    derive_energy(claim.config.run, groups, record);
    record.determinism.requested = claim.config.run.deterministic;
    recompute_verdict(claim, groups, record);
    record.summary_sha256 = summary_digest(claim.record);
    return record;
}

}  // namespace hpcai::verification
