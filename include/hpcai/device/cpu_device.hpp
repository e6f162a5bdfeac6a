// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// How images are laid out between kernels: channels in blocks of the vector width, channels
/// last, or whichever of the two oneDNN picks for a 3x3 convolution.
enum class CpuLayout { automatic, blocked, channels_last };

struct CpuDeviceOptions {
    int threads = 1;
    CpuLayout layout = CpuLayout::automatic;
    /// Every result has the same bits whatever `threads` is: oneDNN works on parts of the batch, up
    /// to 16, each on one thread, and own loops sum in a fixed order. More threads than parts gain
    /// nothing; partial gradients of filters cost time, and memory of 16 MiB or of four times the
    /// largest filter.
    bool deterministic = false;
};

/// The CPU engine: oneDNN for convolutions, pooling and linear layers, own loops for the rest.
/// Throws Error(internal) when oneDNN has no CPU engine.
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

/// Cores of the machine, and those this process may run on by its binding (hwloc). At least 1.
struct Cores {
    int machine = 1;
    int allowed = 1;
    std::uint64_t allowed_set = 0;  // equal for processes of a machine that may use the same cores
};
Cores count_cores();

/// Threads for one rank: `wanted` if positive, else its share of the allowed cores, which
/// `ranks_sharing` ranks have together. At least 1.
int threads_for_rank(int wanted, const Cores& cores, int ranks_sharing);

}  // namespace hpcai::device
