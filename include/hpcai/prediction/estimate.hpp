// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/config/machine.hpp>
#include <hpcai/plan/parallelism_controller.hpp>
#include <hpcai/records/plan_record.hpp>
#include <hpcai/records/roofline_record.hpp>

/// Estimates before a run: arithmetic on the configuration, without MPI or a device.
namespace hpcai::prediction {

/// The input of `hpcai500 plan`. Rates are given by the user or measured, and above 0.
struct EstimateRequest {
    int ranks = 1;
    std::optional<int> ranks_per_node;        // absent: the roofline's if above 1, else P_degree
    std::optional<std::int64_t> samples;      // in the training set: counted, given or of the rules
    std::optional<double> bytes_per_sample;   // mean size of the files in the training folder
    std::optional<double> flops_per_rank;     // sustained FLOP/s in training, ledger table3
    std::optional<double> images_per_second;  // of a rank in training; instead of flops_per_rank
    std::optional<double> watts_per_rank;     // during training
    std::optional<RooflineRecord> roofline;   // instead of flops_per_rank
    std::optional<config::Machine> machine;   // its links replace the roofline's all-reduces
};

/// Makes request.roofline from request.machine, which must be present, and the first of these
/// rates: flops_per_rank or images_per_second of `request`, which is then reset; the machine's
/// training rate in the precision of `config`; the machine's peak rates. Does nothing if `request`
/// has a roofline, or both flops_per_rank and images_per_second, or if there is no rate.
void set_machine_rates(const config::Config& config, EstimateRequest& request);

/// Estimates a run of `config` on request.ranks ranks, which fill one node after the other. Throws
/// Error(launch) if eq. 5 cannot hold (plan::make_layout); Error(usage) if `request` is invalid, or
/// as check_model() and all_reduce_options(); Error(data) if request.roofline lacks rates.
PlanRecord estimate(const config::Config& config, const EstimateRequest& request);

/// Formats the plan: sections of aligned lines, then the assumptions.
std::string to_text(const PlanRecord& plan);

/// Numbers of ranks: `first` x 1, 2, 4 ... as long as the product is below `last`, then `last`.
struct SweepRange {
    int first = 1;
    int last = 1;
};

/// Predicts the speed of bagging and of one data-parallel model for each number of ranks. In
/// bagging, each base model has bagging.P_degree ranks (1 for auto). Each rank computes
/// training.batch_size / P_degree samples per step, at least one. `request` must have a roofline;
/// request.ranks is ignored. A value is absent, with a reason, if no layout has that number of
/// ranks or the speed is unknown. Throws Error(usage) for an invalid range.
SweepRecord sweep(const config::Config& config, const EstimateRequest& request,
                  const SweepRange& range);

/// Formats the sweep as a table.
std::string to_text(const SweepRecord& sweep);

/// Returns the output of `hpcai500 flops`: two lines for each node of the configured model, then
/// totals. The lines have the output shape, parameters, activation bytes, and FLOPs of one sample
/// by ledger and pass (of table3 only the forward pass). Activations are in training.precision, but
/// int8 has fp32 activations, and `auto` is mixed with device.kind cuda and fp32 otherwise.
std::string flops_table(const config::Config& config);

/// Returns the counts of all passes as JSON, schema "hpcai500-flops/1", with exact integers.
std::string flops_json(const config::Config& config);

/// Throws Error(usage), naming the key, if no machine can run `config` in `layout`, the result of
/// make_layout(). Reasons: device.kind cuda with tensor parallelism, nccl with BatchNorm statistics
/// over ranks, a trained BatchNorm with one value per channel, a model that cannot be split into
/// the stages and shards, or, in precision int8, stages and shards that have no int8 convolution.
void check_model(const config::Config& config, const plan::Layout& layout);

}  // namespace hpcai::prediction
