// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/config/interconnect.hpp>
#include <hpcai/ops/flops.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/run_record.hpp>

/// What `hpcai500 plan` is asked, and each part of its answer.
namespace hpcai::prediction {

/// What `hpcai500 plan` is asked. Rates are the user's own, or of a machine that was measured.
struct EstimateRequest {
    int ranks = 1;
    std::optional<int> ranks_per_node;                 // absent: one group's ranks
    std::optional<std::int64_t> samples;               // found in the training folder
    std::optional<double> bytes_per_sample;            // likewise, of the files
    std::optional<double> flops_per_rank;              // FLOP/s sustained in training, table3
    std::optional<double> watts_per_rank;              // while training
    std::optional<RooflineRecord> roofline;            // in place of flops_per_rank
    std::optional<config::Interconnect> interconnect;  // in place of the roofline's sums
};

/// How much is learnt from. Counts are a Quantity where the data set's size may be unknown.
struct DataEstimate {
    Quantity samples;            // N, training samples of the data set
    std::string source;          // where N comes from; empty when there is none
    Quantity samples_per_epoch;  // of one model, drawn; with poisson the expectation
    Quantity steps_per_epoch;    // of one model; the remainder of a batch is dropped
    Quantity steps_per_run;
};

/// FLOPs in the official ledger, table3, of one base model; the ensemble's are M times these.
struct WorkEstimate {
    std::string convention;                                  // "table3"
    std::array<LedgerRecord, ops::kLedgers.size()> ledgers;  // of one sample
    double step = 0;                                         // APC, eq. 3
    Quantity epoch;  // eq. 6, the sum over the steps of one epoch
    Quantity run;
};

/// Bytes of one rank (of a pipeline, of the stage that takes most) while it trains and evaluates,
/// by a simple model stated with each number. Not in it: gradients of activations under way,
/// library scratch, code, and records, whose files are mapped: the system keeps of them what it has
/// room for, once for all ranks of a node. For ResNet-50 at 64 or 224 pixels and 32 samples or more
/// a rank, the CPU engine's plan for activations is 2 to 6 % larger; for detectors, whose finest
/// pyramid levels have large gradients, 5 to 20 %, and half as large again where no stage of the
/// backbone is trained.
struct MemoryEstimate {
    std::string precision;       // of activations and working copies; activations of int8 are fp32
    double parameters = 0;       // fp32 masters
    double gradients = 0;        // fp32; twice where micro-batches are summed
    double optimizer_state = 0;  // fp32
    double statistics = 0;       // fp32 running means and variances
    double working_copies = 0;   // filters and weights once for forward, once for backward
    double activations = 0;      // values that the backward pass reads again, of the samples of
                                 // all micro-batches in flight
    double input = 0;            // prefetched batches and the cache of decoded pictures
    double exchange = 0;         // messages on their way, and what int8 has yet to send
    double program = 0;          // on a CPU: code, libraries, MPI
    /// Of the network that predicts: its values under way, of up to 32 samples (a detector's rank
    /// takes no more than in training), and working copies for forward; where ranks have slices,
    /// the whole model.
    double evaluation = 0;
    bool evaluates_between = false;  // beside what trains, which is gone at the end

    /// While it trains or while it evaluates, whichever takes more.
    double total() const;
};

/// A part of the model that some ranks of each group compute.
struct StageEstimate {
    std::string first_node;
    int nodes = 0;
    double flops = 0;             // of one sample's training, table3
    std::int64_t parameters = 0;  // in number
    double boundary_bytes = 0;    // activations of one micro-batch for the next stage
    int in_flight = 1;            // most micro-batches whose activations it holds
    double statistics_bytes =
        0;  // of a step's BatchNorm statistics, where ranks take them together
    double part_buffer_bytes = 0;  // of what parts exchange at a time, and samples handed on
};

/// How the ranks of a group split a step; one stage where there is no pipeline.
struct PipelineEstimate {
    std::vector<StageEstimate> stages;
    std::string schedule;
    int samples = 0;             // of a micro-batch
    double bubble_fraction = 0;  // of a step, by formula
    double message_bytes = 0;    // of a step between stages, by the rank that sends most
    double part_bytes = 0;       // of a step between parts, by the rank that sends most
    double largest_share = 1;    // of the model's FLOPs, of one rank's stage and part
};

/// What the data duplicator will bring to the node that needs most.
struct StagingEstimate {
    std::string scope;              // data.staging
    Quantity fullest_node_samples;  // distinct training samples, the expectation
    Quantity fullest_node_bytes;
};

/// Bytes one rank sends (and receives) for the sum of gradients, in the group that spans most
/// nodes.
struct TrafficEstimate {
    double gradient_bytes = 0;  // payload of one step; 0: nothing is summed
    std::string algorithm;      // communication.algorithm
    std::string format;         // communication.precision
    double per_step = 0;        // by the rank that sends most, as comm::estimate_traffic has it
    Quantity between_nodes;     // to other nodes in a step, by the rank that sends most there
    Quantity out_of_node;       // to other nodes in a step, by all ranks of one node of one group
    Quantity per_run;
    int statistics_ranks = 1;     // that take their BatchNorm statistics together
    double statistics_bytes = 0;  // payload of a step of these, forward and backward
};

/// From a roofline file, computation and communication; from a given rate, computation alone. Input
/// and evaluation are taken as hidden or left out.
struct TimeEstimate {
    std::string source;              // of the numbers below, for people
    Quantity compute_seconds;        // of a step
    Quantity communication_seconds;  // of a step's sums and messages
    Quantity exposed_seconds;        // of these, what the step gets longer by
    Quantity step_seconds;
    Quantity epoch_seconds;
    Quantity run_seconds;
};

struct Estimate {
    std::string model;  // "resnet50_v1.5"
    int epochs = 0;
    int batch_size = 0;  // of one model
    plan::LayoutSummary layout;
    std::string group_map;  // plan::draw_group_map
    DataEstimate data;
    WorkEstimate work;
    PipelineEstimate pipeline;
    MemoryEstimate memory;
    StagingEstimate staging;
    TrafficEstimate traffic;
    TimeEstimate time;
    Quantity joules;                       // of all ranks, of the run
    std::vector<std::string> assumptions;  // what was taken where nothing was given
};

}  // namespace hpcai::prediction
