// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

#include <hpcai/base/run_record.hpp>

#include "energy_fields.hpp"
#include "roofline_fields.hpp"

/// Every key of `result.json`, once: the writer and the reader are two kinds of `fields`.
namespace hpcai::report {

struct StatusRow {
    Status status;
    std::string_view word;
    ExitCode exit_code;
};

inline constexpr std::array kStatuses{StatusRow{Status::valid, "VALID", ExitCode::ok},
                                      StatusRow{Status::invalid, "INVALID", ExitCode::invalid},
                                      StatusRow{Status::partial, "PARTIAL", ExitCode::partial},
                                      StatusRow{Status::custom, "CUSTOM", ExitCode::ok}};

void describe(auto& fields, Any<RuleRecord> auto& rule) {
    fields("number", rule.number);
    fields("what", rule.what);
    fields("required", rule.required);
    fields("found", rule.found);
    fields("kept", rule.kept);
}

void describe(auto& fields, Any<VerdictRecord> auto& verdict) {
    fields("status", verdict.status);
    fields("reasons", verdict.reasons);
    fields("exit_code", verdict.exit_code);
    fields("rankable", verdict.rankable);
    fields("rules", verdict.rules);
}

void describe(auto& fields, Any<SubmissionRecord> auto& submission) {
    fields("system_name", submission.system_name);
    fields("organization", submission.organization);
    fields("contact", submission.contact);
    fields("hardware", submission.hardware);
    fields("operating_system", submission.operating_system);
    fields("communication_libraries", submission.communication_libraries);
    fields("acceleration_libraries", submission.acceleration_libraries);
    fields("framework", submission.framework);
    fields("parallel_mode", submission.parallel_mode);
    fields("algorithm", submission.algorithm);
    fields("hyper_parameters", submission.hyper_parameters);
    fields("problem", submission.problem);
    fields("missing", submission.missing);
}

void describe(auto& fields, Any<ParameterRecord> auto& parameter) {
    fields("key", parameter.key);
    fields("value", parameter.value);
    fields("meaning", parameter.meaning);
}

void describe(auto& fields, Any<PlaceRecord> auto& place) {
    fields("world_rank", place.world_rank);
    fields("group", place.group);
    fields("group_rank", place.group_rank);
    fields("node", place.node);
    fields("local_rank", place.local_rank);
    fields("threads", place.threads);
    fields("host", place.host);
    fields("device", place.device);
}

void describe(auto& fields, Any<TopologyRecord> auto& topology) {
    fields("ranks", topology.ranks);
    fields("groups", topology.groups);
    fields("degree", topology.degree);
    fields("nodes", topology.nodes);
    fields("map", topology.map);
}

void describe(auto& fields, Any<WorkloadRecord> auto& workload) {
    fields("kind", workload.kind);
    fields("model", workload.model);
    fields("level", workload.level);
    fields("classes", workload.classes);
    fields("image_size", workload.image_size);
    fields("image_width", workload.image_width);
    fields("channels", workload.channels);
    fields("epochs", workload.epochs);
    fields("batch_size", workload.batch_size);
    fields("precision", workload.precision);
    fields("sampler", workload.sampler);
    fields("aggregation", workload.aggregation);
    fields("seed", workload.seed);
    fields("data_kind", workload.data_kind);
    fields("training_samples", workload.training_samples);
    fields("validation_samples", workload.validation_samples);
    fields("data_objections", workload.data_objections);
}

void describe(auto& fields, Any<LedgerRecord> auto& ledger) {
    fields("convention", ledger.convention);
    fields("forward_per_sample", ledger.forward_per_sample);
    fields("training_per_sample", ledger.training_per_sample);
}

void describe(auto& fields, Any<FlopsRecord> auto& flops) {
    fields("forward_per_sample", flops.forward_per_sample);
    fields("training_per_sample", flops.training_per_sample);
    fields("convention", flops.convention);
    fields("ledgers", flops.ledgers);
}

void describe(auto& fields, Any<DivergedRankRecord> auto& rank) {
    fields("group_rank", rank.group_rank);
    fields("world_rank", rank.world_rank);
    fields("host", rank.host);
}

void describe(auto& fields, Any<AuditRecord> auto& audit) {
    fields("passed", audit.passed);
    fields("diverged_at_step", audit.diverged_at_step);
    fields("differs", audit.differs);
    fields("ranks", audit.ranks);
}

void describe(auto& fields, Any<SpreadRecord> auto& spread) {
    fields("minimum", spread.minimum);
    fields("median", spread.median);
    fields("p99", spread.p99);
    fields("maximum", spread.maximum);
}

void describe(auto& fields, Any<StragglerRecord> auto& straggler) {
    fields("group", straggler.group);
    fields("group_rank", straggler.group_rank);
    fields("world_rank", straggler.world_rank);
    fields("host", straggler.host);
    fields("phase", straggler.phase);
    fields("ratio", straggler.ratio);
}

void describe(auto& fields, Any<TimeBreakdownRecord> auto& time) {
    fields("step_seconds", time.step_seconds);
    fields("input_wait", time.input_wait);
    fields("forward", time.forward);
    fields("backward", time.backward);
    fields("communication", time.communication);
    fields("optimizer", time.optimizer);
    fields("other", time.other);
    fields("hidden_communication", time.hidden_communication);
    fields("stragglers", time.stragglers);
}

void describe(auto& fields, Any<EpochQualityRecord> auto& one) {
    fields("epoch", one.epoch);
    fields("training_seconds", one.training_seconds);
    fields("quality", one.quality);
}

void describe(auto& fields, Any<ContinuationRecord> auto& one) {
    fields("step", one.step);
    fields("started_utc", one.started_utc);
}

void describe(auto& fields, Any<DeviceHealthRecord> auto& health) {
    fields("world_rank", health.world_rank);
    fields("host", health.host);
    fields("device", health.device);
    fields("slowed_by", health.slowed_by);
    fields("slowed_share", health.slowed_share);
    fields("corrected_ecc_errors", health.corrected_ecc_errors);
    fields("uncorrected_ecc_errors", health.uncorrected_ecc_errors);
    fields("xids", health.xids);
}

void describe(auto& fields, Any<GroupRecord> auto& group) {
    fields("group", group.group);
    fields("ranks", group.ranks);
    fields("hosts", group.hosts);
    fields("failure", group.failure);
    fields("samples_drawn", group.samples_drawn);
    fields("samples_trained", group.samples_trained);
    fields("iterations", group.iterations);
    fields("skipped_steps", group.skipped_steps);
    fields("training_seconds", group.training_seconds);
    fields("images_per_second", group.images_per_second);
    fields("flops", group.flops);
    fields("input_wait_seconds", group.input_wait_seconds);
    fields("communication_seconds", group.communication_seconds);
    fields("evaluation_seconds", group.evaluation_seconds);
    fields("final_training_loss", group.final_training_loss);
    fields("epoch_seconds", group.epoch_seconds);
    fields("audit", group.audit);
    fields("predictions_sha256", group.predictions_sha256);
    fields("time_breakdown", group.time_breakdown);
    fields("quality_by_epoch", group.quality_by_epoch);
    fields("continuations", group.continuations);
    fields("device_health", group.device_health);
}

void describe(auto& fields, Any<GroupResult> auto& result) {
    fields("schema", result.schema);
    fields("record", result.record);
    fields("quality", result.quality);
    fields("quality_top_5", result.quality_top_5);
    fields("training_digest", result.training_digest);
    fields("bad_samples", result.bad_samples);
    fields("communicated_bytes", result.communicated_bytes);
    fields("gradient_bytes", result.gradient_bytes);
    fields("buckets", result.buckets);
    fields("bandwidth_bytes_per_second", result.bandwidth_bytes_per_second);
    fields("sum_backend", result.sum_backend);
    fields("sent_bytes_per_step", result.sent_bytes_per_step);
    fields("between_nodes_bytes_per_step", result.between_nodes_bytes_per_step);
    fields("out_of_node_bytes_per_step", result.out_of_node_bytes_per_step);
    fields("message_bytes_per_step", result.message_bytes_per_step);
    fields("message_wait_seconds", result.message_wait_seconds);
    fields("part_bytes_per_step", result.part_bytes_per_step);
    fields("part_wait_seconds", result.part_wait_seconds);
    fields("statistics_sums_per_step", result.statistics_sums_per_step);
    fields("statistics_bytes_per_step", result.statistics_bytes_per_step);
    fields("statistics_seconds", result.statistics_seconds);
    fields("counters", result.counters);
}

void describe(auto& fields, Any<WorkRecord> auto& work) {
    fields("samples_trained", work.samples_trained);
    fields("iterations", work.iterations);
    fields("groups", work.groups);
}

void describe(auto& fields, Any<TimeRecord> auto& time) {
    fields("started_utc", time.started_utc);
    fields("startup_seconds", time.startup_seconds);
    fields("staging_seconds", time.staging_seconds);
    fields("training_seconds", time.training_seconds);
    fields("epoch_seconds", time.epoch_seconds);
    fields("time_to_quality_seconds", time.time_to_quality_seconds);
    fields("vote_seconds", time.vote_seconds);
    fields("total_seconds", time.total_seconds);
}

void describe(auto& fields, Any<StagingRecord> auto& staging) {
    fields("scope", staging.scope);
    fields("files", staging.files);
    fields("copied_bytes", staging.copied_bytes);
    fields("reused_bytes", staging.reused_bytes);
    fields("fullest_node_bytes", staging.fullest_node_bytes);
    fields("left_files", staging.left_files);
}

void describe(auto& fields, Any<ThroughputRecord> auto& throughput) {
    fields("images_per_second", throughput.images_per_second);
    fields("per_rank", throughput.per_rank);
}

void describe(auto& fields, Any<IntervalRecord> auto& interval) {
    fields("low", interval.low);
    fields("high", interval.high);
    fields("level", interval.level);
    fields("method", interval.method);
}

void describe(auto& fields, Any<ScoresRecord> auto& scores) {
    fields("flops", scores.flops);
    fields("vflops", scores.vflops);
    fields("penalty_coefficient", scores.penalty_coefficient);
    fields("vflops_per_watt", scores.vflops_per_watt);
    fields("vflops_interval", scores.vflops_interval);
}

void describe(auto& fields, Any<CategoryRecord> auto& category) {
    fields("name", category.name);
    fields("boxes", category.boxes);
    fields("detections", category.detections);
    fields("hits", category.hits);
    fields("ap50", category.ap50);
    fields("voc_ap50", category.voc_ap50);
    fields("ap10", category.ap10);
}

void describe(auto& fields, Any<SegmentRecord> auto& segment) {
    fields("name", segment.name);
    fields("cells", segment.cells);
    fields("predicted", segment.predicted);
    fields("hits", segment.hits);
    fields("iou", segment.iou);
}

void describe(auto& fields, Any<QualityRecord> auto& quality) {
    fields("metric", quality.metric);
    fields("target", quality.target);
    fields("exponent", quality.exponent);
    fields("ensemble", quality.ensemble);
    fields("ensemble_top_5", quality.ensemble_top_5);
    fields("ensemble_majority", quality.ensemble_majority);
    fields("members", quality.members);
    fields("members_mean", quality.members_mean);
    fields("ensemble_gain", quality.ensemble_gain);
    fields("out_of_bag", quality.out_of_bag);
    fields("out_of_bag_samples", quality.out_of_bag_samples);
    fields("confidence_interval", quality.confidence_interval);
    fields("members_interval", quality.members_interval);
    fields("ensemble_voc_ap50", quality.ensemble_voc_ap50);
    fields("ensemble_ap10", quality.ensemble_ap10);
    fields("categories", quality.categories);
    fields("ensemble_pixel_accuracy", quality.ensemble_pixel_accuracy);
    fields("segments", quality.segments);
    fields("ensemble_sha256", quality.ensemble_sha256);
    fields("labels_sha256", quality.labels_sha256);
}

void describe(auto& fields, Any<CommunicationRecord> auto& communication) {
    fields("backend", communication.backend);
    fields("algorithm", communication.algorithm);
    fields("precision", communication.precision);
    fields("torus_columns", communication.torus_columns);
    fields("ranks_per_node", communication.ranks_per_node);
    fields("gradient_bytes", communication.gradient_bytes);
    fields("buckets", communication.buckets);
    fields("exposed_seconds", communication.exposed_seconds);
    fields("bandwidth_bytes_per_second", communication.bandwidth_bytes_per_second);
    fields("sent_bytes_per_step", communication.sent_bytes_per_step);
    fields("between_nodes_bytes_per_step", communication.between_nodes_bytes_per_step);
    fields("out_of_node_bytes_per_step", communication.out_of_node_bytes_per_step);
    fields("exposed_seconds_per_step", communication.exposed_seconds_per_step);
    fields("statistics_ranks", communication.statistics_ranks);
    fields("statistics_sums_per_step", communication.statistics_sums_per_step);
    fields("statistics_bytes_per_step", communication.statistics_bytes_per_step);
    fields("statistics_seconds", communication.statistics_seconds);
    fields("counted_sent_bytes", communication.counted_sent_bytes);
    fields("interfaces", communication.interfaces);
}

void describe(auto& fields, Any<ParallelRecord> auto& parallel) {
    fields("mode", parallel.mode);
    fields("data_degree", parallel.data_degree);
    fields("pipeline_degree", parallel.pipeline_degree);
    fields("model_degree", parallel.model_degree);
    fields("micro_batches", parallel.micro_batches);
    fields("schedule", parallel.schedule);
    fields("bubble_fraction", parallel.bubble_fraction);
    fields("message_bytes_per_step", parallel.message_bytes_per_step);
    fields("message_wait_seconds", parallel.message_wait_seconds);
    fields("part_bytes_per_step", parallel.part_bytes_per_step);
    fields("part_wait_seconds", parallel.part_wait_seconds);
}

void describe(auto& fields, Any<DeterminismRecord> auto& determinism) {
    fields("requested", determinism.requested);
    fields("guarantee", determinism.guarantee);
    fields("conditions", determinism.conditions);
}

void describe(auto& fields, Any<RunRecord> auto& record) {
    fields("schema", record.schema);
    fields("program_version", record.program_version);
    fields("name", record.name);
    fields("verdict", record.verdict);
    fields("submission", record.submission);
    fields("scores", record.scores);
    fields("roofline", record.roofline);
    fields("utilization", record.utilization);
    fields("quality", record.quality);
    fields("topology", record.topology);
    fields("workload", record.workload);
    fields("parameters", record.parameters);
    fields("flops", record.flops);
    fields("work", record.work);
    fields("time", record.time);
    fields("staging", record.staging);
    fields("throughput", record.throughput);
    fields("communication", record.communication);
    fields("parallel", record.parallel);
    fields("time_breakdown", record.time_breakdown);
    fields("energy", record.energy);
    fields("determinism", record.determinism);
    fields("environment", record.environment);
    fields("training_digest", record.training_digest);
    fields("summary_sha256", record.summary_sha256);
    fields("config", record.config);
}

}  // namespace hpcai::report
