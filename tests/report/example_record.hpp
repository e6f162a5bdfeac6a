// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/records/run_record.hpp>

namespace hpcai::report {

/// Returns the spread of a phase that takes the ranks from `scale` to 2 x `scale` seconds.
inline SpreadRecord example_spread(double scale) {
    return {{scale, ""}, {1.5 * scale, ""}, {2 * scale, ""}, {2 * scale, ""}};
}

inline TimeBreakdownRecord example_breakdown() {
    TimeBreakdownRecord time;
    time.step_seconds = {2.5, ""};
    time.input_wait = example_spread(0.0625);
    time.forward = example_spread(0.5);
    time.backward = example_spread(1);
    time.communication = example_spread(0.25);
    time.optimizer = example_spread(0.125);
    time.other = example_spread(0.0625);
    const Quantity unknown{std::nullopt, "made up"};
    time.overlapped_communication = {unknown, unknown, unknown, unknown};
    time.stragglers = {{1, 1, 3, "node1", "backward", 1.5}};
    return time;
}

inline std::vector<DeviceHealthRecord> example_health() {
    const Quantity unknown{std::nullopt, "made up"};
    return {{2, "node1", "GPU-2", {}, {0, ""}, {0, ""}, {0, ""}, {}},
            {3, "node1", "GPU-3", {"hw_thermal_slowdown"}, {0.40625, ""}, {2, ""}, unknown, {}}};
}

inline GroupRecord example_group(int group, double seconds) {
    GroupRecord record;
    record.group = group;
    record.ranks = 2;
    record.hosts = {"node1"};
    record.samples_drawn = 100;
    record.samples_trained = 192;
    record.iterations = 6;
    record.skipped_steps = 2;
    record.training_seconds.value = seconds;
    record.images_per_second.value = 192 / seconds;
    record.flops.value = 192 * 3e9 / seconds;
    record.input_wait_seconds.value = 0.25;
    record.communication_seconds.value = 0.5;
    record.checkpoint_seconds.value = 0.125;
    record.evaluation_seconds.value = 1.5;
    record.final_training_loss.value = 2.125;
    record.epoch_seconds = {seconds / 2, seconds / 2};
    record.audit.passed = 1;
    record.time_breakdown = example_breakdown();
    record.time_breakdown.step_seconds.value = seconds / 6;
    if (group == 0) record.time_breakdown.stragglers.clear();
    if (group == 1) record.device_health = example_health();
    record.quality_by_epoch = {{1, seconds / 2, 0.5}, {2, seconds, group == 0 ? 0.7 : 0.725}};
    return record;
}

inline CommunicationRecord example_communication() {
    return {
        .backend = "mpi",
        .algorithm = "hierarchical",
        .precision = "fp32",
        .torus_columns = {{}, "no grid"},
        .ranks_per_node = {2, ""},
        .gradient_bytes = 4096,
        .buckets = 2,
        .exposed_seconds = {0.5, ""},
        .bandwidth_bytes_per_second = {1e9, ""},
        .sent_bytes_per_step = {4096, ""},
        .between_nodes_bytes_per_step = {{}, "made up"},
        .out_of_node_bytes_per_step = {{}, "made up"},
        .exposed_seconds_per_step = {0.25, ""},
        .statistics_ranks = 2,
        .statistics_sums_per_step = 106,
        .statistics_bytes_per_step = 512,
        .statistics_seconds = {0.125, ""},
        .counted_sent_bytes = {6144, ""},
        .interfaces = {{"node1", "net:eth0", {6144, ""}, {2048, ""}}},
    };
}

inline EnergyRecord example_energy() {
    EnergyRecord energy;
    energy.joules.reason = "no energy meter";
    energy.average_watts.reason = "no energy meter";
    energy.core_begin_utc = "2001-02-03T04:05:07.250Z";
    energy.core_end_utc = "2001-02-03T04:05:23.250Z";
    energy.meters = {{"node1", "rapl", {{}, "no energy meter"}}};
    return energy;
}

inline std::vector<RuleRecord> example_rules(const std::string& epochs) {
    return {{3, "workload.epochs", "90", epochs, epochs == "90"},
            {6, "training.initial_weights", "empty", "empty", true}};
}

inline SubmissionRecord example_submission() {
    SubmissionRecord record;
    record.system_name = "Abacus <2>";
    record.organization = "University of Examples";
    record.hardware = "4 nodes, 8 accelerators each";
    record.missing = {"framework"};
    return record;
}

inline QualityRecord example_quality() {
    QualityRecord quality;
    quality.metric = TopAccuracyRecord{{0.875, ""}, {0.725, ""}, {0.6875, ""}, 64};
    quality.target = 0.763;
    quality.exponent = 5;
    quality.ensemble.value = 0.75;
    quality.members = {{0.7, ""}, {0.725, ""}};
    quality.members_mean.value = 0.7125;
    quality.ensemble_gain.value = 0.0375;
    quality.confidence_interval = {{0.6, ""}, {0.85, ""}, 0.95, "wilson"};
    quality.members_interval = {{0.5625, ""}, {0.875, ""}, 0.95, "made up, too"};
    return quality;
}

/// Returns a synthetic run of two groups of two ranks, with invented numbers, for the tests of
/// printers.
inline RunRecord example_record() {
    RunRecord record;
    record.program_version = "0.0.0-test";
    record.name = "example";
    record.verdict = {Status::valid, {}, ExitCode::ok, true, example_rules("90")};
    record.submission = example_submission();
    record.parameters = {{"bagging.M", "2", "base models trained at the same time"},
                         {"workload.model", "resnet50_v1.5", "network"}};
    record.topology = {4, 2, 2, 1, {}};
    for (int rank = 0; rank < 4; ++rank) {
        record.topology.map.push_back({rank, rank / 2, rank % 2, 0, rank, 1, "node1", "cpu"});
    }
    record.workload = {"image_classification",
                       "official",
                       "resnet50_v1.5",
                       "free",
                       10,
                       64,
                       96,
                       3,
                       2,
                       32,
                       "fp32",
                       "poisson",
                       "soft_vote",
                       18446744073709551615U,
                       "image_folder",
                       100,
                       40,
                       std::string(64, '5')};
    record.config.text = "{\n  \"run\": {\n    \"name\": \"example\"\n  }\n}\n";
    record.flops.forward_per_sample = 1'000'000'000;
    record.flops.training_per_sample = 3'000'000'000;
    record.flops.convention = "table3";
    record.flops.ledgers = {{"table3", 1'000'000'000, 3'000'000'000},
                            {"two_mac", 900'000'000, 2'600'000'000}};
    record.work = {384, 12, {example_group(0, 16), example_group(1, 12)}};
    record.time.started_utc = "2001-02-03T04:05:06Z";
    record.time.startup_seconds.value = 1;
    record.time.staging_seconds.value = 0.5;
    record.staging = {"training", 200, 3000, 400, 3400, 1};
    record.time.training_seconds.value = 16;
    record.time.epoch_seconds = {8, 8};
    record.time.time_to_quality_seconds.reason = "the model of group 0 did not reach the target";
    record.time.vote_seconds.value = 0.125;
    record.time.total_seconds.value = 20;
    record.throughput = {{24, ""}, {6, ""}};
    record.scores.flops.value = 72e9;
    record.scores.vflops.value = 36e9;
    record.scores.penalty_coefficient.value = 0.5;
    record.scores.vflops_per_watt.reason = "no energy meter";
    record.scores.vflops_interval = {{21e9, ""}, {55e9, ""}, 0.95, "made up"};
    record.roofline = {"measured before training", "fp32",   {72e9, ""}, {64e9, ""}, {72e9, ""},
                       "gemm 2048, forward",       {2.5, ""}};
    record.utilization = {{18e9, ""}, {0.25, ""}};
    record.quality = example_quality();
    record.communication = example_communication();
    record.parallel = {
        "data", 2, 1, 1, 4, "1f1b", {{}, "one stage"}, 0, {{}, "one stage"}, 0, {{}, "one shard"}};
    record.time_breakdown = example_breakdown();
    record.energy = example_energy();
    record.determinism = {true, "the same bits", "made up"};
    record.environment = {{"compiler", "g++"}, {"mpi", "made up"}};
    record.invocations = {{record.time.started_utc, "node0", "0123abcd", "hpcai500 run"},
                          {"2001-02-04T00:00:00Z", "node1", "4567cdef", "hpcai500 score run"}};
    record.training_digest = {"0123456789abcdef", "fedcba9876543210"};
    return record;
}

/// Returns a run whose models had two stages of two shards, and whose second group was lost.
inline RunRecord partial_record() {
    RunRecord record = example_record();
    record.parallel = {"mixed",   1,    2,           2,    4,          "1f1b",
                       {0.2, ""}, 8192, {0.125, ""}, 6144, {0.375, ""}};
    record.verdict = {Status::partial,
                      {"1 of 2 groups: group 1 failed: rank 3 ended"},
                      ExitCode::partial,
                      false,
                      {}};
    GroupRecord& lost = record.work.groups[1];
    lost = {};
    lost.group = 1;
    lost.ranks = 2;
    lost.hosts = {"node1"};
    lost.failure = "rank 3 ended";
    record.work.samples_trained = 192;
    record.quality.members[1] = {std::nullopt, "group 1 failed: rank 3 ended"};
    record.training_digest[1] = "";
    return record;
}

/// Returns the record of the launch of partial_record().
inline LaunchRecord example_launch() {
    const RunRecord run = partial_record();
    LaunchRecord launch;
    launch.started_utc = run.time.started_utc;
    launch.config_sha256 = std::string(64, 'a');
    launch.samples_sha256 = std::string(64, 'b');
    launch.precision = run.workload.precision;
    launch.topology = run.topology;
    launch.staging = run.staging;
    launch.staging_seconds = {1.5, ""};
    launch.roofline = run.roofline;
    launch.determinism = run.determinism;
    launch.environment = run.environment;
    launch.invocations = run.invocations;
    return launch;
}

/// Returns a run whose second group was lost because its ranks held different models.
inline RunRecord diverged_record() {
    RunRecord record = partial_record();
    const std::string why = "replica audit after step 4: optimizer state differs";
    record.verdict = {Status::invalid,
                      {"rule 8: the ranks of a group must hold the same model", "group 1: " + why},
                      ExitCode::invalid,
                      false,
                      example_rules("6")};
    GroupRecord& lost = record.work.groups[1];
    lost.failure = why;
    lost.audit = {3, 4, {"optimizer state"}, {{0, 2, "node1"}, {1, 3, "node1"}}};
    return record;
}

/// Returns a run whose groups were all lost.
inline RunRecord lost_record() {
    RunRecord record = partial_record();
    record.verdict = {Status::invalid,
                      {"group 0 failed: no memory", "group 1 failed: rank 3 ended"},
                      ExitCode::all_groups_failed,
                      false,
                      example_rules("90")};
    record.work.groups[0].failure = "no memory";
    record.work.samples_trained = 0;
    for (Quantity* quantity :
         {&record.time.training_seconds, &record.throughput.images_per_second,
          &record.quality.ensemble_gain,
          &std::get<TopAccuracyRecord>(record.quality.metric).out_of_bag,
          &record.quality.confidence_interval.low, &record.quality.confidence_interval.high,
          &record.quality.members_interval.low, &record.quality.members_interval.high,
          &record.scores.vflops_interval.low, &record.scores.vflops_interval.high}) {
        *quantity = {std::nullopt, "every group failed"};
    }
    for (Quantity* quantity :
         {&record.scores.flops, &record.scores.vflops, &record.scores.penalty_coefficient,
          &record.utilization.flops_per_rank, &record.utilization.fraction,
          &record.quality.ensemble, &record.quality.members[0], &record.quality.members_mean}) {
        *quantity = {std::nullopt, "every group failed"};
    }
    return record;
}

}  // namespace hpcai::report
