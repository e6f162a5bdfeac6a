// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/energy_record.hpp>
#include <hpcai/records/record_fields.hpp>

/// What a group leaves behind of its base model: the part of a RunRecord that it fills alone.
namespace hpcai {

/// A rank whose replica of the model was not the others'.
struct DivergedRankRecord {
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    HPCAI_RECORD(DivergedRankRecord, group_rank, world_rank, host);
};

/// Comparisons of what the ranks of a group must hold alike, bit for bit.
struct AuditRecord {
    std::int64_t passed = 0;                // all ranks agreed; none in a group of one rank
    std::int64_t diverged_at_step = 0;      // steps done when they did not; 0: they always did
    std::vector<std::string> differs;       // "parameters", "optimizer state", "statistics"
    std::vector<DivergedRankRecord> ranks;  // against the majority, or all where there is none
    HPCAI_RECORD(AuditRecord, passed, diverged_at_step, differs, ranks);
};

/// Seconds a step of one thing: each rank's mean, over the ranks of a group.
struct SpreadRecord {
    Quantity minimum;
    Quantity median;
    Quantity p99;  // nearest rank
    Quantity maximum;
    HPCAI_RECORD(SpreadRecord, minimum, median, p99, maximum);
};

/// A rank whose own work takes long, so that others wait for it.
struct StragglerRecord {
    int group = 0;
    int group_rank = 0;
    int world_rank = 0;
    std::string host;
    std::string phase;  // of its work, that which takes longer than others' by most
    double ratio = 0;   // of its work's seconds to the median of the ranks beside it
    HPCAI_RECORD(StragglerRecord, group, group_rank, world_rank, host, phase, ratio);
};

/// Where the time of a training step goes.
struct TimeBreakdownRecord {
    Quantity step_seconds;  // median over the ranks of a rank's median
    SpreadRecord input_wait;
    SpreadRecord forward;
    SpreadRecord backward;
    SpreadRecord communication;  // that no computation hid
    SpreadRecord optimizer;
    SpreadRecord other;
    SpreadRecord hidden_communication;  // sums of gradients under way behind computation
    std::vector<StragglerRecord> stragglers;
    HPCAI_RECORD(TimeBreakdownRecord, step_seconds, input_wait, forward, backward, communication,
                 optimizer, other, hidden_communication, stragglers);
};

/// What a base model was worth in the course of its training.
struct EpochQualityRecord {
    int epoch = 0;                // epochs done
    double training_seconds = 0;  // until then, without evaluation
    double quality = 0;
    HPCAI_RECORD(EpochQualityRecord, epoch, training_seconds, quality);
};

/// A training that was taken up again from a checkpoint.
struct ContinuationRecord {
    std::int64_t step = 0;    // the first that was taken anew
    std::string started_utc;  // of the program that took it
    HPCAI_RECORD(ContinuationRecord, step, started_utc);
};

/// What a GPU's driver told while its rank trained.
struct DeviceHealthRecord {
    int world_rank = 0;
    std::string host;
    std::string device;                  // its UUID
    std::vector<std::string> slowed_by;  // in one look at least: "hw_thermal_slowdown", ...
    Quantity slowed_share;               // of the looks, one a second: with clocks lowered by one
    Quantity corrected_ecc_errors;       // in that time, as the next two
    Quantity uncorrected_ecc_errors;
    std::vector<std::int64_t> xids;  // errors of the driver, in order
    HPCAI_RECORD(DeviceHealthRecord, world_rank, host, device, slowed_by, slowed_share,
                 corrected_ecc_errors, uncorrected_ecc_errors, xids);
};

/// One base model: what its group did. Its quality is quality.members[group].
struct GroupRecord {
    int group = 0;
    int ranks = 0;
    std::vector<std::string> hosts;    // each once
    std::string failure;               // empty: finished
    std::int64_t samples_drawn = 0;    // size of its bootstrap
    std::int64_t samples_trained = 0;  // over all epochs
    std::int64_t iterations = 0;
    std::int64_t skipped_steps = 0;  // of these, left out because fp16 gradients had overflown
    Quantity training_seconds;       // end of start-up to the last optimizer step, no evaluation
    Quantity images_per_second;      // samples_trained / training_seconds
    Quantity flops;                  // FLOP/s: its Work / its training_seconds
    Quantity input_wait_seconds;     // mean over its ranks
    Quantity communication_seconds;  // not hidden behind computation; mean over its ranks
    Quantity evaluation_seconds;
    Quantity final_training_loss;       // mean over the last epoch
    std::vector<double> epoch_seconds;  // training only
    AuditRecord audit;
    std::string predictions_sha256;  // of its file of predictions; empty: there is none
    TimeBreakdownRecord time_breakdown;
    std::vector<EpochQualityRecord> quality_by_epoch;  // run.evaluate_epochs
    std::vector<ContinuationRecord> continuations;     // empty: trained in one go
    std::vector<DeviceHealthRecord> device_health;     // by rank; empty: on CPUs
    HPCAI_RECORD(GroupRecord, group, ranks, hosts, failure, samples_drawn, samples_trained,
                 iterations, skipped_steps, training_seconds, images_per_second, flops,
                 input_wait_seconds, communication_seconds, evaluation_seconds, final_training_loss,
                 epoch_seconds, audit, predictions_sha256, time_breakdown, quality_by_epoch,
                 continuations, device_health);
};

/// What one group leaves behind by itself, before any vote: `groups/<m>/record.json`.
struct GroupResult {
    std::string schema = "hpcai500-group/1";
    GroupRecord record;
    Quantity quality;        // the workload's metric on the validation set
    Quantity quality_top_5;  // likewise
    std::string training_digest;
    std::int64_t bad_samples = 0;         // distinct ones met, in training and validation
    std::int64_t communicated_bytes = 0;  // gradient bytes that entered all-reduces, one rank
    std::int64_t gradient_bytes = 0;      // one rank's payload of one step; 0: nothing was summed
    std::int64_t buckets = 0;
    std::string sum_backend;                  // "mpi", "nccl"; empty: nothing was summed
    Quantity bandwidth_bytes_per_second;      // of its sums, as in CommunicationRecord
    Quantity sent_bytes_per_step;             // likewise
    Quantity between_nodes_bytes_per_step;    // likewise
    Quantity out_of_node_bytes_per_step;      // likewise
    std::int64_t message_bytes_per_step = 0;  // as in ParallelRecord
    Quantity message_wait_seconds;            // likewise, as the next two
    std::int64_t part_bytes_per_step = 0;
    Quantity part_wait_seconds;
    std::int64_t statistics_sums_per_step = 0;  // as in CommunicationRecord, as the next two
    std::int64_t statistics_bytes_per_step = 0;
    Quantity statistics_seconds;
    std::vector<CounterRecord> counters;  // meters and interfaces of its nodes
    HPCAI_RECORD(GroupResult, schema, record, quality, quality_top_5, training_digest, bad_samples,
                 communicated_bytes, gradient_bytes, buckets, bandwidth_bytes_per_second,
                 sum_backend, sent_bytes_per_step, between_nodes_bytes_per_step,
                 out_of_node_bytes_per_step, message_bytes_per_step, message_wait_seconds,
                 part_bytes_per_step, part_wait_seconds, statistics_sums_per_step,
                 statistics_bytes_per_step, statistics_seconds, counters);
};

}  // namespace hpcai
