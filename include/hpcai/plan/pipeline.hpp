// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/config/config.hpp>

/// What the ranks of a pipeline do in a step.
namespace hpcai::plan {

enum class PipelinePass { forward, backward };

/// One pass of one micro-batch at one stage.
struct PipelineTask {
    PipelinePass pass = PipelinePass::forward;
    int micro_batch = 0;

    bool operator==(const PipelineTask&) const = default;
};

/// What stage `stage` of `stages` does in a step, in order: each micro-batch forward and backward,
/// each of them in the order of their numbers, so that sums of gradients are the same in all
/// schedules. gpipe: all forward, then all backward (Huang et al. 2019, which goes backward from
/// the last). 1f1b: as many forward as there are stages behind this one, then one forward and one
/// backward in turn (PipeDream-Flush, Narayanan et al. 2021). Stages that follow these lists and
/// wait for nothing but what a pass reads never wait for each other in a circle.
std::vector<PipelineTask> pipeline_tasks(config::PipelineSchedule schedule, int stages, int stage,
                                         int micro_batches);

/// Most micro-batches of which forward is done and backward is not, in such a list: the sets of
/// activations that a stage holds.
int micro_batches_in_flight(const std::vector<PipelineTask>& tasks);

/// Share of a step in which a rank waits while the pipeline fills and drains, where all stages take
/// as long: (stages - 1) / (micro_batches + stages - 1) in both schedules.
double bubble_fraction(int stages, int micro_batches);

}  // namespace hpcai::plan
