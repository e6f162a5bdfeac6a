// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <hpcai/device/device.hpp>

namespace hpcai::device {

/// The layout of images between kernels: `blocked` has channels in blocks of the vector width;
/// `automatic` is the layout that oneDNN chooses for a 3x3 convolution.
enum class CpuLayout { automatic, blocked, channels_last };

struct CpuDeviceOptions {
    int threads = 1;
    CpuLayout layout = CpuLayout::automatic;
    /// True: results have the same bits for any `threads`. oneDNN works on up to 16 parts of the
    /// batch, each on one thread, and our own loops sum in a fixed order. More threads than parts
    /// do not speed up oneDNN. The parts of a layer have separate weight gradients, which take at
    /// most 16 MiB in total, or four times the weights of the layer if that is more.
    bool deterministic = false;
};

/// Makes a device of the CPU engine: oneDNN for convolutions, MaxPool and linear layers, our own
/// loops for other operations. Throws Error(internal) when oneDNN has no CPU engine.
std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options);

/// Returns the version of the library that the CPU engine uses: "2.6.3".
std::string onednn_version();

/// Numbers of cores, at least 1: of the machine, and inside the binding of this process (hwloc).
struct Cores {
    int machine = 1;
    int allowed = 1;
    std::uint64_t allowed_set = 0;  // hash of the allowed cores; 0: unknown
};
Cores count_cores();

/// Numbers of NUMA nodes, at least 1: of the machine, and in the binding of this process (hwloc).
struct NumaNodes {
    int machine = 1;
    int allowed = 1;
};
NumaNodes count_numa_nodes();

/// Returns the number of threads of a rank: `requested` if positive, else an equal share of the
/// allowed cores, which `sharing_ranks` ranks share. At least 1.
int threads_for_rank(int requested, const Cores& cores, int sharing_ranks);

}  // namespace hpcai::device
