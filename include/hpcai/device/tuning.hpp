// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// What a device has timed to choose between kernels.
struct Tuning {
    int convolutions = 0;  // and gradients of them, whose plans it tried
    double seconds = 0;    // with what it tried of operations that are joined
};

/// What a Device is, too, where build() and accepts() time kernels unless told not to.
class Tuner {
public:
    virtual ~Tuner() = default;
    /// So far; nothing where the device was told not to.
    virtual std::optional<Tuning> tuning() const = 0;
};

/// Of any device; nothing where it is no Tuner.
inline std::optional<Tuning> tuning_of(const Device& device) {
    const auto* tuner = dynamic_cast<const Tuner*>(&device);
    return tuner == nullptr ? std::nullopt : tuner->tuning();
}

}  // namespace hpcai::device
