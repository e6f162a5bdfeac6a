// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// The layout of images between kernels. `channels_last`: (N, H, W, C). `blocked`: blocks of 8 or
/// 16 channels if the block size divides C, else channels last or, with up to three channels, (N,
/// C, H, W). `automatic`: the layout that oneDNN prefers for 3x3 convolutions.
enum class CpuLayout { automatic, blocked, channels_last };

struct CpuDeviceOptions {
    int threads = 1;
    CpuLayout layout = CpuLayout::automatic;
    /// True: results have the same bits for any `threads`. A batch is then divided into up to 16
    /// sub-batches, each computed by one thread, so oneDNN uses no more threads than sub-batches.
    /// Each sub-batch has its own copy of a layer's weight gradients. If 16 copies exceed 16 MiB,
    /// the weight gradient uses 8 sub-batches; if 8 copies exceed it, 4 sub-batches.
    bool deterministic = false;
};

/// Makes a device of the CPU engine: oneDNN for convolutions, MaxPool and linear layers, the
/// engine's own loops for other operations. Throws Error(internal) when oneDNN has no CPU engine.
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

/// Returns the version of oneDNN, such as "2.6.3".
std::string onednn_version();

/// Numbers of cores, each at least 1.
struct Cores {
    int machine = 1;                // all cores of the machine
    int allowed = 1;                // the cores on which this process may run
    std::uint64_t allowed_set = 0;  // hash of the allowed hardware threads; 0: unknown
};
Cores count_cores();

/// Numbers of NUMA nodes, each at least 1.
struct NumaNodes {
    int machine = 1;  // all NUMA nodes of the machine
    int allowed = 1;  // NUMA nodes with cores on which this process may run
};
NumaNodes count_numa_nodes();

/// Returns the number of threads of a rank: `requested` if positive, else the number of allowed
/// cores divided by the number of ranks that share them, rounded down, but at least 1.
int threads_for_rank(int requested, const Cores& cores, int sharing_ranks);

}  // namespace hpcai::device
