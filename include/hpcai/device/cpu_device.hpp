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
    /// Results have the same bits for any `threads`: oneDNN computes up to 16 slices of the batch,
    /// each on one thread, and our own loops sum in a fixed order. More threads than slices do not
    /// speed up oneDNN. The weight gradients of all slices of a layer occupy at most 16 MiB, or
    /// four times its weights if that is more.
    bool deterministic = false;
};

/// Makes a device of the CPU engine: oneDNN for convolutions, MaxPool and linear layers, our own
/// loops for other operations. Throws Error(internal) when oneDNN has no CPU engine.
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

/// Numbers of cores of the machine and in the CPU binding of this process (hwloc), at least 1.
struct Cores {
    int machine = 1;
    int allowed = 1;
    std::uint64_t allowed_set = 0;  // hash of the allowed cores; 0: unknown
};
Cores count_cores();

/// Numbers of NUMA nodes of the machine and with cores in the CPU binding (hwloc), at least 1.
struct NumaNodes {
    int machine = 1;
    int allowed = 1;
};
NumaNodes count_numa_nodes();

/// The number of threads of one rank: `requested` if positive, else its share of the allowed cores,
/// which `ranks` ranks share. At least 1.
int threads_for_rank(int requested, const Cores& cores, int ranks);

}  // namespace hpcai::device
