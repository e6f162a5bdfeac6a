// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/record_fields.hpp>
#include <hpcai/records/run_record.hpp>

/// The estimates of `hpcai500 plan`. A number that the configuration does not determine has a
/// reason instead of a value.
namespace hpcai {

struct PlanLayoutRecord {
    int ranks = 1;   // Sys_scale of the paper
    int groups = 1;  // M
    int degree = 1;  // P_degree
    int nodes = 0;   // with at least one rank
    int ranks_of_fullest_node = 0;
    int groups_on_one_node = 0;     // groups whose gradients never leave a node
    int nodes_of_widest_group = 0;  // largest number of nodes that a group spans
    std::vector<std::string> map;   // lines of plan::draw_group_map
    HPCAI_RECORD(PlanLayoutRecord, ranks, groups, degree, nodes, ranks_of_fullest_node,
                 groups_on_one_node, nodes_of_widest_group, map);
};

struct PlanDataRecord {
    Quantity samples;            // N, the training samples of the data set
    std::string source;          // where N is from; empty if N is unknown
    Quantity samples_per_epoch;  // drawn for one model; expected number if the sampler is poisson
    Quantity steps_per_epoch;    // of one model, without an incomplete batch
    Quantity steps_per_run;
    HPCAI_RECORD(PlanDataRecord, samples, source, samples_per_epoch, steps_per_epoch,
                 steps_per_run);
};

struct PlanFlopsRecord {
    double step = 0;  // of one training step (APC): eq. 3, for the ensemble eq. 4
    Quantity epoch;   // work of eq. 6, in the steps of one epoch
    Quantity run;
    HPCAI_RECORD(PlanFlopsRecord, step, epoch, run);
};

struct PlanWorkRecord {
    std::string convention;             // the official ledger, used for the FLOPs below
    std::vector<LedgerRecord> ledgers;  // FLOPs of one sample
    PlanFlopsRecord model_flops;        // of one base model
    PlanFlopsRecord ensemble_flops;     // of all M
    HPCAI_RECORD(PlanWorkRecord, convention, ledgers, model_flops, ensemble_flops);
};

/// A pipeline stage of the model.
struct PlanStageRecord {
    std::string first_node;       // name of a graph node
    int nodes = 0;                // graph nodes
    double flops_per_sample = 0;  // of training, table3
    std::int64_t parameters = 0;  // number of parameters
    double boundary_bytes = 0;    // activations of a micro-batch for the next stage
    int in_flight = 1;            // largest number of micro-batches with stored activations
    HPCAI_RECORD(PlanStageRecord, first_node, nodes, flops_per_sample, parameters, boundary_bytes,
                 in_flight);
};

/// The division of a step between the ranks of a group. Without a pipeline, it has one stage.
struct PlanParallelRecord {
    int data_degree = 1;
    int pipeline_degree = 1;  // stages
    int model_degree = 1;     // shards of each layer
    int micro_batches = 1;
    int micro_batch_samples = 0;
    std::string schedule;
    Fraction bubble_fraction;           // of a step, by formula
    Fraction largest_stage_share{1};    // largest share of one sample's FLOPs on one rank
    double message_bytes_per_step = 0;  // between stages, of the rank that sends the most
    double shard_bytes_per_step = 0;    // between shards, of the rank that sends the most
    std::vector<PlanStageRecord> stages;
    HPCAI_RECORD(PlanParallelRecord, data_degree, pipeline_degree, model_degree, micro_batches,
                 micro_batch_samples, schedule, bubble_fraction, largest_stage_share,
                 message_bytes_per_step, shard_bytes_per_step, stages);
};

/// Bytes of one rank while it trains and evaluates, in the pipeline stage that needs the most.
/// The estimate excludes gradients of activations, scratch memory of libraries, and climate files,
/// which are memory-mapped and shared by the ranks of a node. For ResNet-50 at 64 or 224 pixels and
/// 32 or more samples per rank, activations on the CPU need 2 to 6 % more than estimated. For
/// detectors, whose finest pyramid levels have large gradients, they need 5 to 20 % more, or about
/// 50 % more if the whole backbone is frozen.
struct PlanMemoryRecord {
    std::string precision;  // of activations and working copies; with int8, activations are fp32
    double parameter_bytes = 0;     // fp32 master weights
    double gradient_bytes = 0;      // fp32; two copies with several micro-batches
    double optimizer_bytes = 0;     // fp32
    double statistics_bytes = 0;    // fp32 running means and variances
    double working_copy_bytes = 0;  // filters and weights cast for forward and for backward
    double activation_bytes = 0;    // kept for the backward passes of all micro-batches in flight
    double input_bytes = 0;         // prefetched batches; images kept in host memory or on the GPU
    double exchange_bytes = 0;      // buffers of messages, shards, all-reduces; int8 error feedback
    double program_bytes = 0;       // on a CPU: code, libraries, MPI
    /// The inference network: working copies, and activations of up to 32 samples (for detectors
    /// and segmentations, at most as many as in training). It has all parameters, even with shards.
    double evaluation_bytes = 0;
    double total_bytes = 0;          // maximum of training and evaluation; sum if evaluates_between
    double fullest_node_bytes = 0;   // total_bytes x ranks_of_fullest_node
    bool evaluates_between = false;  // whether there are evaluations between epochs; not stored
    HPCAI_RECORD(PlanMemoryRecord, precision, parameter_bytes, gradient_bytes, optimizer_bytes,
                 statistics_bytes, working_copy_bytes, activation_bytes, input_bytes,
                 exchange_bytes, program_bytes, evaluation_bytes, total_bytes, fullest_node_bytes);
};

/// The samples and bytes that staging copies to the node that needs the most of them.
struct PlanStagingRecord {
    std::string scope;              // data.staging
    Quantity fullest_node_samples;  // expected distinct training samples
    Quantity fullest_node_bytes;
    HPCAI_RECORD(PlanStagingRecord, scope, fullest_node_samples, fullest_node_bytes);
};

/// All-reduce bytes (gradients, BatchNorm statistics) of a rank in the group with the most nodes.
struct PlanTrafficRecord {
    double gradient_bytes = 0;       // payload per step; 0: no all-reduce
    std::string algorithm;           // communication.algorithm
    std::string precision;           // communication.precision
    double sent_bytes_per_step = 0;  // of the rank that sends the most; comm::estimate_traffic
    Quantity sent_bytes_per_run;
    double between_nodes_bytes_per_step = 0;  // of the rank that sends the most to other nodes
    double out_of_node_bytes_per_step = 0;    // to other nodes, sum of a group's ranks on one node
    int statistics_ranks = 1;                 // ranks that share BatchNorm statistics
    double statistics_bytes_per_step = 0;     // payload of one of these ranks, in both passes
    HPCAI_RECORD(PlanTrafficRecord, gradient_bytes, algorithm, precision, sent_bytes_per_step,
                 sent_bytes_per_run, between_nodes_bytes_per_step, out_of_node_bytes_per_step,
                 statistics_ranks, statistics_bytes_per_step);
};

/// Predicted times. Computation is from a roofline file, --machine or a given rate; communication
/// is from the file or --machine. Input overlaps with computation; evaluation is excluded.
struct PlanTimeRecord {
    std::string source;              // where the numbers below are from
    Quantity compute_seconds;        // of a step, with the pipeline's bubble
    Quantity communication_seconds;  // of a step's all-reduces and messages
    Quantity exposed_seconds;        // by which communication lengthens a step; can exceed it
    Quantity step_seconds;
    Quantity epoch_seconds;
    Quantity run_seconds;
    HPCAI_RECORD(PlanTimeRecord, source, compute_seconds, communication_seconds, exposed_seconds,
                 step_seconds, epoch_seconds, run_seconds);
};

struct PlanEnergyRecord {
    Quantity joules;  // of the run, all ranks
    HPCAI_RECORD(PlanEnergyRecord, joules);
};

/// Trials of a search that train the configured network. Networks of later trials have more FLOPs.
struct PlanSearchRecord {
    int epochs = 0;            // of a trial: the last number in search.epochs
    Quantity trial_seconds;    // training and evaluation of these epochs
    Quantity trials_per_hour;  // of all groups
    HPCAI_RECORD(PlanSearchRecord, epochs, trial_seconds, trials_per_hour);
};

struct PlanRecord {
    static constexpr bool has_whole_numbers = true;  // writes whole numbers without ".0"

    std::string schema = "hpcai500-plan/2";
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
    std::optional<PlanSearchRecord> search;  // absent for other workloads
    std::vector<std::string> assumptions;    // of the estimate
    HPCAI_RECORD(PlanRecord, schema, model, epochs, batch_size, layout, data, work, parallel,
                 memory_per_rank, staging, traffic_per_rank, time, energy, search, assumptions);
};

/// The predicted speed for one number of ranks.
struct SweepPoint {
    int ranks = 0;
    Quantity bagging_flops;        // FLOP/s of all base models
    Quantity bagging_efficiency;   // relative to independent ranks without communication
    Quantity data_parallel_flops;  // of one model on all ranks
    Quantity data_parallel_efficiency;
    HPCAI_RECORD(SweepPoint, ranks, bagging_flops, bagging_efficiency, data_parallel_flops,
                 data_parallel_efficiency);
};

/// Predicts Fig. 5 and Fig. 9 of the paper: bagging and one data-parallel model on growing numbers
/// of ranks, with a fixed number of samples per rank and step.
struct SweepRecord {
    std::string model;
    std::string source;              // of the times
    int degree = 1;                  // ranks per base model
    int samples_per_rank = 0;        // per step
    std::vector<SweepPoint> points;  // by number of ranks
    std::vector<std::string> assumptions;
    std::string schema = "hpcai500-sweep/1";
    PlanMemoryRecord memory_per_rank;  // on the node with the most ranks of any point; not stored
    HPCAI_RECORD(SweepRecord, schema, model, source, degree, samples_per_rank, points, assumptions);
};

}  // namespace hpcai
