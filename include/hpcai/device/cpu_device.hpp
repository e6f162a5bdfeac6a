// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// The layout of images between kernels: `blocked` has channels in blocks of the vector width;
/// `automatic` is the layout that oneDNN chooses for a 3x3 convolution.
enum class CpuLayout { automatic, blocked, channels_last };

struct CpuDeviceOptions {
    int threads = 1;
    CpuLayout layout = CpuLayout::automatic;
    /// Every result has the same bits for any `threads`: oneDNN works on up to 16 parts of the
    /// batch, each on one thread, and our own loops sum in a fixed order. More threads than parts
    /// do not speed up oneDNN. Each part has its own gradient of the weights: up to 16 MiB
    /// together, or four times the weights of a layer if that is more.
    bool deterministic = false;
};

/// The CPU engine: oneDNN for convolutions, MaxPool and linear layers, our own loops for the rest.
/// Throws Error(internal) when oneDNN has no CPU engine.
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

/// Cores of the machine, and those that the binding of this process allows (hwloc). At least 1.
struct Cores {
    int machine = 1;
    int allowed = 1;
    std::uint64_t allowed_set = 0;  // a hash of the allowed cores; 0: unknown
};
Cores count_cores();

/// NUMA nodes of the machine, and those with cores allowed to this process (hwloc). At least 1.
struct NumaNodes {
    int machine = 1;
    int allowed = 1;
};
NumaNodes count_numa_nodes();

/// The threads of one rank: `wanted` if positive, else its share of the allowed cores, which
/// `ranks_sharing` ranks share. At least 1.
int threads_for_rank(int wanted, const Cores& cores, int ranks_sharing);

}  // namespace hpcai::device
