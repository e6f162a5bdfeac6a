// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/training/pipeline_share.hpp>
#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// Makes the optimizer steps of a stage, which runs them in micro-batches together with the group's
/// other stages: each forward and backward in the order of plan::pipeline_tasks, then the sum of
/// gradients over the replicas and the update. Gradients are added in fp32 in the order of the
/// micro-batches, whatever the schedule. BatchNorm takes statistics of each micro-batch and updates
/// its running ones once for each, in order. Only the ranks with the first shard of the first stage
/// read batches. They send the labels to the last stage and the samples to the other shards.
/// Activations and their gradients go through host memory, in the type and layout in which the
/// networks keep them. StepRunner::read() is collective in the group; losses and samples are those
/// of all its ranks. `setup.network` is the first of the share's networks.
std::unique_ptr<StepRunner> make_pipeline_step(StepSetup setup, const PipelineShare& share);

}  // namespace hpcai::training
