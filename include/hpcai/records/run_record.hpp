// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <hpcai/records/energy_record.hpp>
#include <hpcai/records/group_record.hpp>
#include <hpcai/records/metric_record.hpp>
#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/roofline_record.hpp>
#include <hpcai/records/verdict_record.hpp>

/// What one run of the benchmark leaves behind: the structs mirror `result.json` key by key, and
/// every printer works from a RunRecord alone. Plain data.
namespace hpcai {

/// One line of the echo above the table: a setting in force, and what it means.
struct ParameterRecord {
    std::string key;  // as in the configuration, or a fact found out, e.g. "bagging.M"
    std::string value;
    std::string meaning;
    HPCAI_RECORD(ParameterRecord, key, value, meaning);
};

/// Where one rank ran.
struct PlaceRecord {
    int world_rank = 0;
    int group = 0;
    int group_rank = 0;
    int node = 0;
    int local_rank = 0;  // among the ranks of its node
    int threads = 0;
    std::string host;
    std::string device;  // e.g. "cpu"
    HPCAI_RECORD(PlaceRecord, world_rank, group, group_rank, node, local_rank, threads, host,
                 device);
};

struct TopologyRecord {
    int ranks = 0;
    int groups = 0;  // M
    int degree = 0;  // P_degree, ranks a group
    int nodes = 0;
    std::vector<PlaceRecord> map;  // by world rank
    HPCAI_RECORD(TopologyRecord, ranks, groups, degree, nodes, map);
};

struct WorkloadRecord {
    std::string kind;   // "image_classification"
    std::string model;  // "resnet50_v1.5"
    std::string level;  // "hardware", "system", "free", "custom"
    int classes = 0;
    int image_size = 0;   // pixels, the height
    int image_width = 0;  // pixels
    int channels = 0;
    int epochs = 0;
    int batch_size = 0;     // per model
    std::string precision;  // in force, never "auto"
    std::string sampler;
    std::string aggregation;
    std::uint64_t seed = 0;
    std::string data_kind;
    std::int64_t training_samples = 0;  // in the data set, before the bootstrap
    std::int64_t validation_samples = 0;
    std::vector<std::string> data_objections;  // why the data are not those of the rules
    HPCAI_RECORD(WorkloadRecord, kind, model, level, classes, image_size, image_width, channels,
                 epochs, batch_size, precision, sampler, aggregation, seed, data_kind,
                 training_samples, validation_samples, data_objections);
};

/// FLOPs of one sample under one convention.
struct LedgerRecord {
    std::string convention;  // "table3", "two_mac", "aiperf"
    std::int64_t forward_per_sample = 0;
    std::int64_t training_per_sample = 0;  // forward and backward
    HPCAI_RECORD(LedgerRecord, convention, forward_per_sample, training_per_sample);
};

struct FlopsRecord {
    std::string convention;  // the ledger that the scores use
    std::int64_t forward_per_sample = 0;
    std::int64_t training_per_sample = 0;
    std::vector<LedgerRecord> ledgers;
    HPCAI_RECORD(FlopsRecord, forward_per_sample, training_per_sample, convention, ledgers);
};

struct WorkRecord {
    std::int64_t samples_trained = 0;  // all groups that finished
    std::int64_t iterations = 0;       // likewise
    std::vector<GroupRecord> groups;   // in order, all M
    HPCAI_RECORD(WorkRecord, samples_trained, iterations, groups);
};

/// What the data duplicator did, on all nodes together.
struct StagingRecord {
    std::string scope = "none";           // data.staging
    std::int64_t files = 0;               // of the source, once for each node that needs them
    std::int64_t copied_bytes = 0;        // read from the shared file system and written
    std::int64_t reused_bytes = 0;        // found on the nodes, and checked
    std::int64_t fullest_node_bytes = 0;  // of copies on the node that has most
    std::int64_t left_files = 0;          // needed, but no readable files: read where they lie
    HPCAI_RECORD(StagingRecord, scope, files, copied_bytes, reused_bytes, fullest_node_bytes,
                 left_files);
};

struct TimeRecord {
    std::string started_utc;  // ISO 8601
    Quantity startup_seconds;
    Quantity staging_seconds;
    Quantity training_seconds;          // the longest of all groups: the denominator of eq. 6
    std::vector<double> epoch_seconds;  // per epoch, the longest of all groups
    Quantity time_to_quality_seconds;   // of training, until every group's model had the target
    Quantity vote_seconds;
    Quantity total_seconds;
    HPCAI_RECORD(TimeRecord, started_utc, startup_seconds, staging_seconds, training_seconds,
                 epoch_seconds, time_to_quality_seconds, vote_seconds, total_seconds);
};

struct ThroughputRecord {
    Quantity images_per_second;  // all groups' samples / the longest training time
    Quantity per_rank;           // images_per_second / ranks
    HPCAI_RECORD(ThroughputRecord, images_per_second, per_rank);
};

struct IntervalRecord {
    Quantity low;
    Quantity high;
    double level = 0.95;
    std::string method;  // e.g. "wilson"
    HPCAI_RECORD(IntervalRecord, low, high, level, method);
};

struct ScoresRecord {
    Quantity flops;                // FLOP/s, eq. 6
    Quantity vflops;               // FLOP/s, eq. 7
    Quantity penalty_coefficient;  // eq. 8
    Quantity vflops_per_watt;
    IntervalRecord vflops_interval;  // from those of the quality
    HPCAI_RECORD(ScoresRecord, flops, vflops, penalty_coefficient, vflops_per_watt,
                 vflops_interval);
};

struct QualityRecord {
    MetricRecord metric;
    double target = 0;
    double exponent = 0;  // n of eq. 8
    Quantity ensemble;
    std::vector<Quantity> members;       // by group
    Quantity members_mean;               // of the groups that finished
    Quantity ensemble_gain;              // ensemble - members_mean
    IntervalRecord confidence_interval;  // of `ensemble`
    IntervalRecord members_interval;     // likewise, over the choice of members, too
    std::string ensemble_sha256;         // of the file of the ensemble's predictions
    std::string labels_sha256;           // of the file of labels or boxes they were judged by
    HPCAI_RECORD(QualityRecord, metric, target, exponent, ensemble, members, members_mean,
                 ensemble_gain, confidence_interval, members_interval, ensemble_sha256,
                 labels_sha256);
};

struct CommunicationRecord {
    std::string backend;
    std::string algorithm;
    std::string precision;
    Quantity torus_columns;           // in force: ranks in a row of torus_2d's grid
    Quantity ranks_per_node;          // in force: that hierarchical takes for one node's, the most
    std::int64_t gradient_bytes = 0;  // one rank's payload of one step; 0: nothing was summed
    std::int64_t buckets = 0;         // likewise
    Quantity exposed_seconds;         // not hidden behind computation; the largest of all groups
    Quantity bandwidth_bytes_per_second;  // payload / time under way; the least of all groups
    // In sums of gradients, of the group where it is most: by the rank that sends most, ...
    Quantity sent_bytes_per_step;
    Quantity between_nodes_bytes_per_step;  // ... to other nodes, ...
    Quantity out_of_node_bytes_per_step;    // ... and by all ranks of the group on one node
    Quantity exposed_seconds_per_step;      // the largest of all groups
    // Of BatchNorm statistics that ranks take together
    int statistics_ranks = 1;
    std::int64_t statistics_sums_per_step = 0;
    std::int64_t statistics_bytes_per_step = 0;  // one rank's payload
    Quantity statistics_seconds;                 // of exposed_seconds; the largest of all groups
    // Of all programs on the nodes in the core phase, by the interfaces' own counters
    Quantity counted_sent_bytes;
    std::vector<InterfaceRecord> interfaces;
    HPCAI_RECORD(CommunicationRecord, backend, algorithm, precision, torus_columns, ranks_per_node,
                 gradient_bytes, buckets, exposed_seconds, bandwidth_bytes_per_second,
                 sent_bytes_per_step, between_nodes_bytes_per_step, out_of_node_bytes_per_step,
                 exposed_seconds_per_step, statistics_ranks, statistics_sums_per_step,
                 statistics_bytes_per_step, statistics_seconds, counted_sent_bytes, interfaces);
};

/// How the ranks of a group split a step.
struct ParallelRecord {
    std::string mode;
    int data_degree = 1;      // ranks that share a batch
    int pipeline_degree = 1;  // stages
    int model_degree = 1;     // parts of each layer
    int micro_batches = 1;
    std::string schedule;
    Quantity bubble_fraction;                 // of a step, by formula: stages wait for one another
    std::int64_t message_bytes_per_step = 0;  // between stages, by the rank that sends most
    Quantity message_wait_seconds;  // a rank's, for other stages; mean over ranks, largest of all
                                    // groups
    std::int64_t part_bytes_per_step = 0;  // between parts, by the rank that sends most
    Quantity part_wait_seconds;            // a rank's, for other parts; likewise
    HPCAI_RECORD(ParallelRecord, mode, data_degree, pipeline_degree, model_degree, micro_batches,
                 schedule, bubble_fraction, message_bytes_per_step, message_wait_seconds,
                 part_bytes_per_step, part_wait_seconds);
};

/// What the devices promised of the bits of this run's results.
struct DeterminismRecord {
    bool requested = false;  // run.deterministic
    std::string guarantee;   // what is promised, or why nothing is
    std::string conditions;  // what has to be the same for that; empty where nothing is promised
    HPCAI_RECORD(DeterminismRecord, requested, guarantee, conditions);
};

struct RunRecord {
    std::string schema = "hpcai500-result/1";
    std::string program_version;
    std::string name;
    VerdictRecord verdict;
    std::vector<ParameterRecord> parameters;  // what the summary echoes
    TopologyRecord topology;
    WorkloadRecord workload;
    std::string config;  // the effective configuration, YAML text
    SubmissionRecord submission;
    FlopsRecord flops;
    WorkRecord work;
    TimeRecord time;
    StagingRecord staging;
    ThroughputRecord throughput;
    ScoresRecord scores;
    CeilingRecord roofline;
    UtilizationRecord utilization;
    QualityRecord quality;
    CommunicationRecord communication;
    ParallelRecord parallel;
    TimeBreakdownRecord time_breakdown;  // number by number the largest of all groups
    EnergyRecord energy;
    DeterminismRecord determinism;
    std::map<std::string, std::string> environment;  // allow-listed facts only
    // SHA-256 of the final parameters, by group; empty if there are none
    std::vector<std::string> training_digest;
    std::string summary_sha256;  // of summary.txt with nothing behind "manifest="
    HPCAI_RECORD(RunRecord, schema, program_version, name, verdict, submission, scores, roofline,
                 utilization, quality, topology, workload, parameters, flops, work, time, staging,
                 throughput, communication, parallel, time_breakdown, energy, determinism,
                 environment, training_digest, summary_sha256, config);
};

}  // namespace hpcai
