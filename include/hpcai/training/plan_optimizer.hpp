// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/config/config.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// Returns the optimizer of a network's parameters and of their working copies, which kernels read
/// in the network's compute type. With LARS and LAMB, each filter tensor and weight matrix has its
/// own trust ratio. Only filters and weight matrices have weight decay, unless
/// training.weight_decay_on_norm_and_bias is set.
device::Optimizer plan_optimizer(const graph::Network& network, const graph::ParameterStore& store,
                                 const config::TrainingConfig& training);

/// Returns the store's buffers and the network's step scalars, for an optimizer.
device::OptimizerTensors optimizer_tensors(graph::Network& network, graph::ParameterStore& store);

}  // namespace hpcai::training
