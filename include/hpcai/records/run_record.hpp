// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <hpcai/records/group_record.hpp>
#include <hpcai/records/metric_record.hpp>
#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/roofline_record.hpp>
#include <hpcai/records/verdict_record.hpp>

/// The result of one run and the facts of its launch. The structs mirror `result.json` and
/// `launch.json` key by key.
namespace hpcai {

/// A setting of the run, which the summary prints, and its meaning.
struct ParameterRecord {
    std::string key;  // of the configuration, such as "bagging.M", or the name of a fact
    std::string value;
    std::string meaning;
    HPCAI_RECORD(ParameterRecord, key, value, meaning);
};

/// The placement of one rank.
struct PlaceRecord {
    int world_rank = 0;
    int group = 0;
    int group_rank = 0;
    int node = 0;
    int local_rank = 0;  // among the ranks of its node
    int threads = 0;
    std::string host;
    std::string device;  // "2 threads of AMD EPYC ..., oneDNN 2.6.3"
    HPCAI_RECORD(PlaceRecord, world_rank, group, group_rank, node, local_rank, threads, host,
                 device);
};

struct TopologyRecord {
    int ranks = 0;
    int groups = 0;  // M
    int degree = 0;  // P_degree, ranks per group
    int nodes = 0;
    std::vector<PlaceRecord> map;  // by world rank
    HPCAI_RECORD(TopologyRecord, ranks, groups, degree, nodes, map);
};

struct WorkloadRecord {
    std::string kind;           // "image_classification"
    std::string problem_class;  // "official", "mini"
    std::string model;          // "resnet50_v1.5"
    std::string level;          // "hardware", "system", "free", "aiperf", "custom"
    int classes = 0;
    int image_size = 0;   // pixels, the height
    int image_width = 0;  // pixels
    int channels = 0;
    int epochs = 0;
    int batch_size = 0;     // per model
    std::string precision;  // the resolved precision, never "auto"
    std::string sampler;
    std::string aggregation;
    std::uint64_t seed = 0;
    std::string data_kind;
    std::int64_t training_samples = 0;  // in the data set, before the bootstrap
    std::int64_t validation_samples = 0;
    std::string samples_sha256;                       // as in LaunchRecord
    std::vector<std::string> data_disqualifications;  // why the rules do not accept the data
    HPCAI_RECORD(WorkloadRecord, kind, problem_class, model, level, classes, image_size,
                 image_width, channels, epochs, batch_size, precision, sampler, aggregation, seed,
                 data_kind, training_samples, validation_samples, samples_sha256,
                 data_disqualifications);
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
    std::int64_t samples_trained = 0;  // of the finished groups
    std::int64_t iterations = 0;       // of the finished groups
    std::vector<GroupRecord> groups;   // all M, in order
    HPCAI_RECORD(WorkRecord, samples_trained, iterations, groups);
};

/// The work of the data duplicator on all nodes.
struct StagingRecord {
    std::string scope = "none";           // data.staging
    std::int64_t files = 0;               // source files, once for each node that needs them
    std::int64_t copied_bytes = 0;        // read from the shared file system and written
    std::int64_t reused_bytes = 0;        // found on the nodes and checked
    std::int64_t fullest_node_bytes = 0;  // size of the copies on the node with the most
    std::int64_t left_files = 0;          // needed but not staged: unreadable or above 512 MiB
    HPCAI_RECORD(StagingRecord, scope, files, copied_bytes, reused_bytes, fullest_node_bytes,
                 left_files);
};

struct TimeRecord {
    std::string started_utc;   // ISO 8601
    Quantity startup_seconds;  // without staging_seconds
    Quantity staging_seconds;
    Quantity training_seconds;          // the longest of all groups: the denominator of eq. 6
    std::vector<double> epoch_seconds;  // per epoch, the longest of all groups
    Quantity time_to_quality_seconds;   // until all finished groups reached the target
    Quantity vote_seconds;
    Quantity total_seconds;
    HPCAI_RECORD(TimeRecord, started_utc, startup_seconds, staging_seconds, training_seconds,
                 epoch_seconds, time_to_quality_seconds, vote_seconds, total_seconds);
};

struct ThroughputRecord {
    Quantity images_per_second;  // finished groups' samples / time.training_seconds
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
    Quantity flops;                // FLOP/s, eq. 6: training FLOPs / time.training_seconds
    Quantity vflops;               // FLOP/s, eq. 7: flops x penalty_coefficient
    Quantity penalty_coefficient;  // eq. 8: (quality.ensemble / quality.target)^quality.exponent
    Quantity vflops_per_watt;
    IntervalRecord vflops_interval;  // from quality.members_interval, else confidence_interval
    HPCAI_RECORD(ScoresRecord, flops, vflops, penalty_coefficient, vflops_per_watt,
                 vflops_interval);
};

struct QualityRecord {
    MetricRecord metric;
    double target = 0;
    double exponent = 0;  // n of eq. 8 of the paper
    Quantity ensemble;
    std::vector<Quantity> members;       // by group
    Quantity members_mean;               // of the finished groups
    Quantity ensemble_gain;              // ensemble - members_mean
    IntervalRecord confidence_interval;  // of `ensemble`
    IntervalRecord members_interval;     // of `ensemble`, by resampling the members
    std::string ensemble_sha256;         // of the file of the ensemble's predictions
    std::string labels_sha256;           // of the file of labels or boxes
    HPCAI_RECORD(QualityRecord, metric, target, exponent, ensemble, members, members_mean,
                 ensemble_gain, confidence_interval, members_interval, ensemble_sha256,
                 labels_sha256);
};

struct CommunicationRecord {
    std::string backend;
    std::string algorithm;
    std::string precision;
    Quantity torus_columns;           // torus_2d: ranks in a row of the grid
    Quantity ranks_per_node;          // hierarchical: largest number of a group's ranks on a node
    std::int64_t gradient_bytes = 0;  // payload of one rank per step; 0: no all-reduce
    std::int64_t buckets = 0;         // per step
    Quantity exposed_seconds;         // not overlapped with computation; largest of all groups
    Quantity bandwidth_bytes_per_second;  // payload / all-reduce time; smallest of all groups
    // Bytes sent in all-reduces of gradients and BatchNorm statistics; maximum over groups
    Quantity sent_bytes_per_step;           // of the rank that sends the most
    Quantity between_nodes_bytes_per_step;  // to other nodes, of the rank that sends the most there
    Quantity out_of_node_bytes_per_step;    // to other nodes, sum of a group's ranks on one node
    Quantity exposed_seconds_per_step;      // largest of all groups
    // BatchNorm statistics over several ranks
    int statistics_ranks = 1;
    std::int64_t statistics_sums_per_step = 0;   // number of all-reduces
    std::int64_t statistics_bytes_per_step = 0;  // one rank's payload
    Quantity statistics_seconds;                 // part of exposed_seconds; largest of all groups
    // Bytes of all programs, counted by the nodes' network interfaces in the core phase
    Quantity counted_sent_bytes;
    std::vector<InterfaceRecord> interfaces;
    HPCAI_RECORD(CommunicationRecord, backend, algorithm, precision, torus_columns, ranks_per_node,
                 gradient_bytes, buckets, exposed_seconds, bandwidth_bytes_per_second,
                 sent_bytes_per_step, between_nodes_bytes_per_step, out_of_node_bytes_per_step,
                 exposed_seconds_per_step, statistics_ranks, statistics_sums_per_step,
                 statistics_bytes_per_step, statistics_seconds, counted_sent_bytes, interfaces);
};

/// The division of a step between the ranks of a group.
struct ParallelRecord {
    std::string mode;
    int data_degree = 1;      // replicas, which share a batch
    int pipeline_degree = 1;  // stages
    int model_degree = 1;     // shards of each layer
    int micro_batches = 1;
    std::string schedule;
    Quantity bubble_fraction;                 // share of a step in which stages wait, by formula
    std::int64_t message_bytes_per_step = 0;  // between stages, of the rank that sends the most
    Quantity message_wait_seconds;  // waits for other stages; mean over ranks, maximum of groups
    std::int64_t shard_bytes_per_step = 0;  // between shards, of the rank that sends the most
    Quantity shard_wait_seconds;  // waits for other shards; mean over ranks, maximum of groups
    HPCAI_RECORD(ParallelRecord, mode, data_degree, pipeline_degree, model_degree, micro_batches,
                 schedule, bubble_fraction, message_bytes_per_step, message_wait_seconds,
                 shard_bytes_per_step, shard_wait_seconds);
};

/// An invocation of `run`, `resume` or `score` that worked on a run.
struct InvocationRecord {
    std::string started_utc;
    std::string host;  // of rank 0
    std::string binary_sha256;
    std::string command_line;
    HPCAI_RECORD(InvocationRecord, started_utc, host, binary_sha256, command_line);
};

/// The devices' guarantee of bitwise equal results in repeated runs.
struct DeterminismRecord {
    bool requested = false;  // value of run.deterministic
    std::string guarantee;   // the guarantee, or why there is none
    std::string conditions;  // what must be equal for bitwise equal results; empty: no guarantee
    HPCAI_RECORD(DeterminismRecord, requested, guarantee, conditions);
};

struct RunRecord {
    std::string schema = "hpcai500-result/5";
    std::string program_version;
    std::string name;
    VerdictRecord verdict;
    std::vector<ParameterRecord> parameters;  // in the summary's order
    TopologyRecord topology;
    WorkloadRecord workload;
    JsonObject config;  // the effective configuration: sections of keys
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
    std::optional<SearchRecord> search;  // of an architecture search; else absent
    TimeBreakdownRecord time_breakdown;  // each number is the largest of all groups
    EnergyRecord energy;
    DeterminismRecord determinism;
    std::map<std::string, std::string> environment;  // only facts on an allow list
    std::vector<InvocationRecord> invocations;       // in order
    std::vector<std::string> training_digest;        // training::training_digest(), by group
    std::string summary_sha256;                      // of summary.txt with an empty "manifest="
    HPCAI_RECORD(RunRecord, schema, program_version, name, verdict, submission, scores, roofline,
                 utilization, quality, topology, workload, parameters, flops, work, time, staging,
                 throughput, communication, parallel, time_breakdown, energy, determinism,
                 environment, invocations, training_digest, summary_sha256, search, config);
};

inline constexpr const char* kLaunchName = "launch.json";

/// `launch.json`: facts of a launch before its ranks form groups. `resume` and `score` read it.
struct LaunchRecord {
    std::string schema = "hpcai500-launch/3";
    std::string started_utc;     // start of the launch that began the run
    std::string config_sha256;   // of the configuration that the run began with
    std::string samples_sha256;  // data::SampleSets::sha256
    std::string precision;       // the resolved precision, never "auto"
    TopologyRecord topology;     // of the latest launch
    StagingRecord staging;       // this and the members below: as in RunRecord
    Quantity staging_seconds;
    CeilingRecord roofline;
    DeterminismRecord determinism;
    std::map<std::string, std::string> environment;
    std::vector<InvocationRecord> invocations;
    HPCAI_RECORD(LaunchRecord, schema, started_utc, config_sha256, samples_sha256, precision,
                 topology, staging, staging_seconds, roofline, determinism, environment,
                 invocations);
};

}  // namespace hpcai
