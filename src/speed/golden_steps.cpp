// SPDX-License-Identifier: Apache-2.0
#include "golden_steps.hpp"

#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/config/reader.hpp>
#include <hpcai/storage/sha256.hpp>

#include "whole_step.hpp"

namespace hpcai::speed {

std::string golden_digest(const config::Config& config, const device::Cores& cores,
                          const context::PlaceOnNode& place) {
    constexpr int kSteps = 20;
    constexpr int kSamples = 4;
    config::Config small =
        config::parse("", "golden",
                      {"workload.classes=10", "workload.image_size=32", "run.deterministic=true",
                       "training.precision=fp32", "training.batch_size=4"});
    small.device = config.device;
    const auto device = context::open_device(small, cores, place).device;
    const auto self = comm::make_self_communicator();
    const auto reducer = comm::make_mpi_reducer(*self);
    WholeStep step({small, *device, context::choose_precision(small.training.precision, *device),
                    *reducer, kSamples});
    // A reading may lie behind several steps of a device.
    while (std::ssize(step.phases().steps()) < kSteps) step.seconds();
    const std::vector<float> parameters = step.store().read(step.store().parameters());
    return storage::sha256_hex(std::as_bytes(std::span(parameters)));
}

}  // namespace hpcai::speed
