// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <hpcai/config/config.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/device/cpu_device.hpp>

namespace hpcai::speed {

/// Returns the SHA-256 of the parameters after 20 training steps of a ResNet-50 on 4 random
/// pictures of 32 x 32 pixels, in fp32 and with run.deterministic, on the configured device. It is
/// the same on every rank with such a device. Not collective.
std::string golden_digest(const config::Config& config, const device::Cores& cores,
                          const context::PlaceOnNode& place);

}  // namespace hpcai::speed
