// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/config/config.hpp>

/// Schedules of pipeline parallelism.
namespace hpcai::plan {

enum class PipelinePass { forward, backward };

/// One pass of one micro-batch at one stage.
struct PipelineTask {
    PipelinePass pass = PipelinePass::forward;
    int micro_batch = 0;

    bool operator==(const PipelineTask&) const = default;
};

/// Returns the tasks of stage `stage` of `stages` in a step, in order. Forward and backward passes
/// are each in the order of the micro-batches, so that gradient sums are the same in all schedules.
/// gpipe: all forward passes, then all backward passes (Huang et al. 2019, who reverse the order of
/// the backward passes); a single stage runs 1f1b. 1f1b (PipeDream-Flush, Narayanan et al. 2021):
/// one forward pass for each later stage, but at most one for each micro-batch; then a forward and
/// a backward pass in turn; then the remaining backward passes. Stages that run these tasks in
/// order and wait only for the inputs of a pass never deadlock.
std::vector<PipelineTask> pipeline_tasks(config::PipelineSchedule schedule, int stages, int stage,
                                         int micro_batches);

/// Returns the maximum number of micro-batches whose forward pass has run and whose backward pass
/// has not. A stage stores the activations of this many micro-batches.
int micro_batches_in_flight(const std::vector<PipelineTask>& tasks);

/// Returns the fraction of a step in which a rank waits while the pipeline fills and drains, for
/// stages of equal duration: (stages - 1) / (micro_batches + stages - 1) in both schedules.
double bubble_fraction(int stages, int micro_batches);

}  // namespace hpcai::plan
