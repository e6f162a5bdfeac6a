// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/device/cpu_device.hpp>

namespace hpcai::speed {

/// SHA-256 of the parameters after 20 training steps of a ResNet-50 on 4 random pictures of 32
/// pixels a side, in fp32 and with run.deterministic, on the device that `config` asks for. The
/// same on every rank with such a device. Takes no part in what other ranks do.
std::string golden_digest(const config::Config& config, const device::Cores& cores,
                          const context::PlaceOnNode& place);

}  // namespace hpcai::speed
