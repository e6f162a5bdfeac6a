// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/search_record.hpp>

/// The result of one base model and the readings of meters and counters, which its group stores.
namespace hpcai {

/// One reading of a counter that only grows. Its zero is arbitrary.
struct CounterReading {
    double utc_seconds = 0;  // since 1970
    double value = 0;        // joules, bytes, steps or seconds
    HPCAI_RECORD(CounterReading, utc_seconds, value);
};

/// The readings that one group took of a counter of a node while the group trained.
struct CounterRecord {
    std::string host;
    std::string name;                      // "nvml:<UUID>", "rapl:package-0"
    std::string unit;                      // "J", "B", "1" for steps, "s" for clocks
    std::string failure;                   // why there are no readings; else empty
    std::vector<CounterReading> readings;  // sorted by time
    HPCAI_RECORD(CounterRecord, host, name, unit, failure, readings);
};

/// The energy that one meter counted in the core phase (see EnergyRecord), from the readings of all
/// groups on its node.
struct MeterRecord {
    std::string host;
    std::string name;
    Quantity joules;
    HPCAI_RECORD(MeterRecord, host, name, joules);
};

struct EnergyRecord {
    std::string source;  // "NVML", "RAPL", "NVML and RAPL", or empty
    std::string method;  // what was read and how often, and what is missing
    std::string level;   // level in the methodology of the Energy Efficient HPC Working Group
    Quantity joules;     // of the core phase, all nodes
    Quantity average_watts;
    std::string core_begin_utc;  // ISO 8601: start of the first step of any group
    std::string core_end_utc;    // end of the last step; for comparison with an external meter
    std::vector<MeterRecord> meters;
    HPCAI_RECORD(EnergyRecord, source, method, level, joules, average_watts, core_begin_utc,
                 core_end_utc, meters);
};

/// Bytes that a network interface of a node counted in the core phase, for all programs.
struct InterfaceRecord {
    std::string host;
    std::string name;
    Quantity sent_bytes;
    Quantity received_bytes;
    HPCAI_RECORD(InterfaceRecord, host, name, sent_bytes, received_bytes);
};

/// A rank whose replica of the model differed from the others.
struct DivergedRankRecord {
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    HPCAI_RECORD(DivergedRankRecord, group_rank, world_rank, host);
};

/// Comparisons of the state that must be bitwise equal on all replicas in a group.
struct AuditRecord {
    std::int64_t passed = 0;                // comparisons without a difference; 0 without replicas
    std::int64_t diverged_at_step = 0;      // steps done at the first difference; 0: none
    std::vector<std::string> differs;       // "parameters", "optimizer state", "statistics"
    std::vector<DivergedRankRecord> ranks;  // that differ from the majority; all without a majority
    HPCAI_RECORD(AuditRecord, passed, diverged_at_step, differs, ranks);
};

/// Spread of one phase over the ranks of a group. A rank's value is its mean seconds per step.
struct SpreadRecord {
    Quantity minimum;
    Quantity median;
    Quantity p99;  // by the nearest-rank method
    Quantity maximum;
    HPCAI_RECORD(SpreadRecord, minimum, median, p99, maximum);
};

/// A rank that is slow in its own work, so that other ranks wait for it.
struct StragglerRecord {
    int group = 0;
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::string phase;  // whose excess over the median of the pipeline stage is the largest
    double ratio = 0;   // seconds of its work / median over all ranks of the pipeline stage
    HPCAI_RECORD(StragglerRecord, group, group_rank, world_rank, host, phase, ratio);
};

/// How the time of a training step is spent.
struct TimeBreakdownRecord {
    Quantity step_seconds;  // median over ranks of each rank's median over its steps
    SpreadRecord input_wait;
    SpreadRecord forward;
    SpreadRecord backward;
    SpreadRecord communication;  // exposed: not overlapped with computation
    SpreadRecord optimizer;
    SpreadRecord other;
    SpreadRecord overlapped_communication;  // all-reduces overlapped with computation
    std::vector<StragglerRecord> stragglers;
    HPCAI_RECORD(TimeBreakdownRecord, step_seconds, input_wait, forward, backward, communication,
                 optimizer, other, overlapped_communication, stragglers);
};

/// The quality of a base model after an epoch.
struct EpochQualityRecord {
    int epoch = 0;                // epochs done
    double training_seconds = 0;  // until the end of this epoch, without evaluations
    double quality = 0;
    HPCAI_RECORD(EpochQualityRecord, epoch, training_seconds, quality);
};

/// A resumption of training from a checkpoint, or from step 0 if there was none.
struct ContinuationRecord {
    std::int64_t step = 0;    // the first step after the resumption
    std::string started_utc;  // start of the launch that resumed
    HPCAI_RECORD(ContinuationRecord, step, started_utc);
};

/// The health of a GPU, as its driver reported it while its rank trained.
struct DeviceHealthRecord {
    int world_rank = 0;
    std::string host;
    std::string device;                  // UUID of the GPU
    std::vector<std::string> slowed_by;  // causes of throttled clocks: "hw_thermal_slowdown"
    Quantity slowed_share;          // share of the polls, one per second, with throttled clocks
    Quantity corrected_ecc_errors;  // this and the members below: during training
    Quantity uncorrected_ecc_errors;
    std::vector<std::int64_t> xids;  // NVIDIA's numbers of driver errors, in order
    HPCAI_RECORD(DeviceHealthRecord, world_rank, host, device, slowed_by, slowed_share,
                 corrected_ecc_errors, uncorrected_ecc_errors, xids);
};

/// The training of one base model. RunRecord::quality.members[group] has its quality.
struct GroupRecord {
    int group = 0;
    int ranks = 0;
    std::vector<std::string> hosts;    // without duplicates
    std::string failure;               // empty if the group finished
    std::int64_t samples_drawn = 0;    // size of the bootstrap sample
    std::int64_t samples_trained = 0;  // over all epochs
    std::int64_t iterations = 0;
    std::int64_t skipped_steps = 0;     // of `iterations`, because fp16 gradients overflowed
    Quantity training_seconds;          // end of start-up to end of last step, without evaluation
    Quantity images_per_second;         // samples_trained / training_seconds
    Quantity flops;                     // FLOP/s: FLOPs of training / training_seconds
    Quantity input_wait_seconds;        // of all steps; mean over the ranks that read samples
    Quantity communication_seconds;     // of all steps, exposed; mean over ranks
    Quantity checkpoint_seconds;        // by which checkpoints delay steps; mean over ranks
    Quantity evaluation_seconds;        // prediction of test and out-of-bag samples
    Quantity final_training_loss;       // mean over the last epoch
    std::vector<double> epoch_seconds;  // training only
    AuditRecord audit;
    std::string predictions_sha256;  // of the predictions file; empty if there is none
    TimeBreakdownRecord time_breakdown;
    std::vector<EpochQualityRecord> quality_by_epoch;  // with run.evaluate_epochs
    std::vector<ContinuationRecord> continuations;     // empty if the group was never resumed
    std::vector<DeviceHealthRecord> device_health;  // by rank; empty on CPUs or if run.meters: none
    HPCAI_RECORD(GroupRecord, group, ranks, hosts, failure, samples_drawn, samples_trained,
                 iterations, skipped_steps, training_seconds, images_per_second, flops,
                 input_wait_seconds, communication_seconds, checkpoint_seconds, evaluation_seconds,
                 final_training_loss, epoch_seconds, audit, predictions_sha256, time_breakdown,
                 quality_by_epoch, continuations, device_health);
};

/// The result of one group before the vote: `groups/<m>/record.json`.
struct GroupResult {
    std::string schema = "hpcai500-group/3";
    GroupRecord record;
    Quantity quality;        // the workload's metric on the test samples
    Quantity quality_top_5;  // Top-5 accuracy, for classification
    std::string training_digest;
    // Damaged samples: largest number that any rank found in training, plus those of the test data
    std::int64_t bad_samples = 0;
    std::int64_t decoder_warnings = 0;    // other images with a decoder's warning, counted as above
    std::int64_t communicated_bytes = 0;  // of gradients in all-reduces; largest of all ranks
    std::int64_t gradient_bytes = 0;      // per step, of one rank; 0: no all-reduce
    std::int64_t buckets = 0;
    std::string all_reduce_backend;       // "mpi", "nccl"; empty if there is no all-reduce
    Quantity bandwidth_bytes_per_second;  // this and the next three: as in CommunicationRecord
    Quantity sent_bytes_per_step;
    Quantity between_nodes_bytes_per_step;
    Quantity out_of_node_bytes_per_step;
    std::int64_t message_bytes_per_step = 0;  // this and the next three: as in ParallelRecord
    Quantity message_wait_seconds;
    std::int64_t shard_bytes_per_step = 0;
    Quantity shard_wait_seconds;
    std::int64_t statistics_sums_per_step = 0;  // this and the next two: as in CommunicationRecord
    std::int64_t statistics_bytes_per_step = 0;
    Quantity statistics_seconds;
    std::vector<CounterRecord> counters;      // of nodes, steps and the leader's clocks
    std::optional<GroupSearchRecord> search;  // of an architecture search; else absent
    HPCAI_RECORD(GroupResult, schema, record, quality, quality_top_5, training_digest, bad_samples,
                 decoder_warnings, communicated_bytes, gradient_bytes, buckets,
                 bandwidth_bytes_per_second, all_reduce_backend, sent_bytes_per_step,
                 between_nodes_bytes_per_step, out_of_node_bytes_per_step, message_bytes_per_step,
                 message_wait_seconds, shard_bytes_per_step, shard_wait_seconds,
                 statistics_sums_per_step, statistics_bytes_per_step, statistics_seconds, counters,
                 search);
};

}  // namespace hpcai
