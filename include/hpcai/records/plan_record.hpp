// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/run_record.hpp>

/// What `hpcai500 plan` knows of a run before it. Plain data. A number that cannot be known without
/// inventing another is empty and says why.
namespace hpcai {

struct PlanLayoutRecord {
    int ranks = 1;   // Sys_scale
    int groups = 1;  // M
    int degree = 1;  // P_degree
    int nodes = 0;   // that hold a rank
    int ranks_of_fullest_node = 0;
    int groups_on_one_node = 0;  // whose gradients never leave a node
    int nodes_of_widest_group = 0;
    std::vector<std::string> map;  // of groups to nodes: lines of plan::draw_group_map
    HPCAI_RECORD(PlanLayoutRecord, ranks, groups, degree, nodes, ranks_of_fullest_node,
                 groups_on_one_node, nodes_of_widest_group, map);
};

/// How much is learnt from.
struct PlanDataRecord {
    Quantity samples;            // N, training samples of the data set
    std::string source;          // where N comes from; empty when there is none
    Quantity samples_per_epoch;  // of one model, drawn; with poisson the expectation
    Quantity steps_per_epoch;    // of one model; the remainder of a batch is dropped
    Quantity steps_per_run;
    HPCAI_RECORD(PlanDataRecord, samples, source, samples_per_epoch, steps_per_epoch,
                 steps_per_run);
};

struct PlanFlopsRecord {
    double step = 0;  // APC, eq. 3
    Quantity epoch;   // eq. 6, the sum over the steps of one epoch
    Quantity run;
    HPCAI_RECORD(PlanFlopsRecord, step, epoch, run);
};

struct PlanWorkRecord {
    std::string convention;             // the official ledger, which counts the FLOPs below
    std::vector<LedgerRecord> ledgers;  // of one sample
    PlanFlopsRecord model_flops;        // of one base model
    PlanFlopsRecord ensemble_flops;     // of all M
    HPCAI_RECORD(PlanWorkRecord, convention, ledgers, model_flops, ensemble_flops);
};

/// A part of the model that some ranks of each group compute.
struct PlanStageRecord {
    std::string first_node;
    int nodes = 0;
    double flops_per_sample = 0;  // of training, table3
    std::int64_t parameters = 0;  // in number
    double boundary_bytes = 0;    // activations of one micro-batch for the next stage
    int in_flight = 1;            // most micro-batches whose activations it holds
    HPCAI_RECORD(PlanStageRecord, first_node, nodes, flops_per_sample, parameters, boundary_bytes,
                 in_flight);
};

/// How the ranks of a group split a step; one stage where there is no pipeline.
struct PlanParallelRecord {
    int data_degree = 1;
    int pipeline_degree = 1;  // stages
    int model_degree = 1;     // parts of each layer
    int micro_batches = 1;
    int micro_batch_samples = 0;
    std::string schedule;
    Fraction bubble_fraction;           // of a step, by formula
    Fraction largest_stage_share{1};    // of the model's FLOPs, of one rank's stage and part
    double message_bytes_per_step = 0;  // between stages, by the rank that sends most
    double part_bytes_per_step = 0;     // between parts, by the rank that sends most
    std::vector<PlanStageRecord> stages;
    HPCAI_RECORD(PlanParallelRecord, data_degree, pipeline_degree, model_degree, micro_batches,
                 micro_batch_samples, schedule, bubble_fraction, largest_stage_share,
                 message_bytes_per_step, part_bytes_per_step, stages);
};

/// Bytes of one rank (of a pipeline, of the stage that takes most) while it trains and evaluates,
/// by a simple model stated with each number. Not in it: gradients of activations under way,
/// library scratch, code, and records, whose files are mapped: the system keeps of them what it has
/// room for, once for all ranks of a node. For ResNet-50 at 64 or 224 pixels and 32 samples or more
/// a rank, the CPU engine's plan for activations is 2 to 6 % larger; for detectors, whose finest
/// pyramid levels have large gradients, 5 to 20 %, and half as large again where no stage of the
/// backbone is trained.
struct PlanMemoryRecord {
    std::string precision;        // of activations and working copies; activations of int8 are fp32
    double parameter_bytes = 0;   // fp32 masters
    double gradient_bytes = 0;    // fp32; twice where micro-batches are summed
    double optimizer_bytes = 0;   // fp32
    double statistics_bytes = 0;  // fp32 running means and variances
    double working_copy_bytes = 0;  // filters and weights once for forward, once for backward
    double activation_bytes = 0;    // values that the backward pass reads again, of the samples of
                                    // all micro-batches in flight
    double input_bytes = 0;         // prefetched batches and the cache of decoded pictures
    double exchange_bytes = 0;      // messages on their way, and what int8 has yet to send
    double program_bytes = 0;       // on a CPU: code, libraries, MPI
    /// The network that predicts: its values of up to 32 samples (of a detector or a segmentation
    /// no more than in training) and working copies for forward. Ranks with shards hold the whole
    /// model.
    double evaluation_bytes = 0;
    double total_bytes = 0;  // while it trains or while it evaluates, whichever takes more
    double fullest_node_bytes = 0;
    bool evaluates_between = false;  // beside what trains; not written
    HPCAI_RECORD(PlanMemoryRecord, precision, parameter_bytes, gradient_bytes, optimizer_bytes,
                 statistics_bytes, working_copy_bytes, activation_bytes, input_bytes,
                 exchange_bytes, program_bytes, evaluation_bytes, total_bytes, fullest_node_bytes);
};

/// What the data duplicator will bring to the node that needs most.
struct PlanStagingRecord {
    std::string scope;              // data.staging
    Quantity fullest_node_samples;  // distinct training samples, the expectation
    Quantity fullest_node_bytes;
    HPCAI_RECORD(PlanStagingRecord, scope, fullest_node_samples, fullest_node_bytes);
};

/// Bytes one rank sends (and receives) for the sum of gradients, in the group that spans most
/// nodes.
struct PlanTrafficRecord {
    double gradient_bytes = 0;       // payload of one step; 0: nothing is summed
    std::string algorithm;           // communication.algorithm
    std::string precision;           // communication.precision
    double sent_bytes_per_step = 0;  // by the rank that sends most, as comm::estimate_traffic
    Quantity sent_bytes_per_run;
    double between_nodes_bytes_per_step = 0;  // to other nodes, by the rank that sends most there
    double out_of_node_bytes_per_step = 0;    // likewise, by all ranks of one node of one group
    int statistics_ranks = 1;                 // that take their BatchNorm statistics together
    double statistics_bytes_per_step = 0;     // payload of these, forward and backward
    HPCAI_RECORD(PlanTrafficRecord, gradient_bytes, algorithm, precision, sent_bytes_per_step,
                 sent_bytes_per_run, between_nodes_bytes_per_step, out_of_node_bytes_per_step,
                 statistics_ranks, statistics_bytes_per_step);
};

/// From a roofline file, computation and communication; from a given rate, computation alone. Input
/// and evaluation are taken as hidden or left out.
struct PlanTimeRecord {
    std::string source;              // of the numbers below, for people
    Quantity compute_seconds;        // of a step, with the pipeline's bubble
    Quantity communication_seconds;  // of a step's sums and messages
    Quantity exposed_seconds;        // of these, what the step gets longer by
    Quantity step_seconds;
    Quantity epoch_seconds;
    Quantity run_seconds;
    HPCAI_RECORD(PlanTimeRecord, source, compute_seconds, communication_seconds, exposed_seconds,
                 step_seconds, epoch_seconds, run_seconds);
};

struct PlanEnergyRecord {
    Quantity joules;  // of all ranks, of the run
    HPCAI_RECORD(PlanEnergyRecord, joules);
};

struct PlanRecord {
    static constexpr bool has_whole_numbers = true;  // 5, not 5.0, where a number is whole

    std::string schema = "hpcai500-plan/1";
    std::string model;  // "resnet50_v1.5"
    int epochs = 0;
    int batch_size = 0;  // of one model
    PlanLayoutRecord layout;
    PlanDataRecord data;
    PlanWorkRecord work;
    PlanParallelRecord parallel;
    PlanMemoryRecord memory_per_rank;
    PlanStagingRecord staging;
    PlanTrafficRecord traffic_per_rank;
    PlanTimeRecord time;
    PlanEnergyRecord energy;
    std::vector<std::string> assumptions;  // what was taken where nothing was given
    HPCAI_RECORD(PlanRecord, schema, model, epochs, batch_size, layout, data, work, parallel,
                 memory_per_rank, staging, traffic_per_rank, time, energy, assumptions);
};

}  // namespace hpcai
