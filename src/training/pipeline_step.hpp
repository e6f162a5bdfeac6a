// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/training/step_runner.hpp>

namespace hpcai::training {

/// Makes a runner of optimizer steps for one stage. A step runs the forward and backward passes of
/// all micro-batches in the order of plan::pipeline_tasks, together with the group's other stages.
/// Then it all-reduces the gradients over the replicas and updates the parameters. Gradients are
/// added in fp32 in the order of the micro-batches, whatever the schedule. BatchNorm uses the
/// statistics of each micro-batch and updates the running statistics once per micro-batch. Only
/// the ranks with the first shard of the first stage use batches. They send the samples to the
/// stage's other shards; each shard sends the labels to its counterpart in the last stage.
/// Activations and their gradients pass through host memory, in the type and layout of the
/// networks. StepRunner::read() is collective in the group and returns losses and samples of all
/// its ranks. `setup.network` is share.networks[0].
std::unique_ptr<StepRunner> make_pipeline_step(StepSetup setup, const PipelineShare& share);

}  // namespace hpcai::training
