// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/log.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/device/device.hpp>
#include <hpcai/graph/graph.hpp>
#include <hpcai/reference/naive_network.hpp>
#include <hpcai/speed/check_records.hpp>

namespace hpcai::speed {

/// One training step of training.batch_size samples without update, computed by naive loops in
/// double from the model without fusion. Not for detectors and int8.
class StepCheck {
public:
    /// Computes the step, which may take minutes; `log` shows the progress.
    StepCheck(const config::Config& config, const device::Precision& precision, Logger& log);

    /// Runs the step on a device, fused as in training. Returns the comparison of the running
    /// statistics, the losses and the gradients in the order in which a step computes them,
    /// gradients by parameter. Throws as the device does.
    std::vector<TensorCheck> run(device::Device& device) const;

private:
    naive::NetworkResult run_on(device::Device& device) const;

    const config::Config& config_;
    const device::Precision precision_;
    const graph::Graph graph_;
    const float loss_scale_;
    std::vector<naive::Tensor> parameters_;
    naive::NetworkResult exact_, rounded_;
};

}  // namespace hpcai::speed
