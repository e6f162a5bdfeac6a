// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/config/config.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/device/device.hpp>

namespace hpcai::context {

/// The position of a rank on its node.
struct PlaceOnNode {
    int ranks_sharing_cores = 1;  // including this rank
    int local_rank = 0;           // from 0, among the ranks of the node
    int ranks_on_node = 1;        // including this rank
};

struct OpenDevice {
    std::unique_ptr<device::Device> device;
    std::string note;  // "no GPU is used: ..." if device.kind auto found a driver but uses the CPU
};

/// Opens the configured device: the CPU with this rank's threads, or GPU number local_rank modulo
/// the number of GPUs of the node. The device is deterministic with run.deterministic. Throws an
/// Error if device.kind is cuda and the rank's GPU cannot be used.
OpenDevice open_device(const config::Config& config, const device::Cores& cores,
                       const PlaceOnNode& place);

/// The device of one rank. Every rank has the facts of all ranks.
struct RankFacts {
    int threads = 0;
    std::string device;
    std::string device_uuid;  // empty: a CPU
    device::Determinism determinism;
};

/// Returns "ranks 1 and 3 share GPU-..." for the first ranks that share a GPU; empty if none do.
std::string describe_gpu_sharing(std::span<const RankFacts> by_world_rank);

/// Throws Error(launch) if only some ranks have a GPU, or if ranks share a GPU and run.level is not
/// custom.
void check_devices(std::span<const RankFacts> by_world_rank, config::Level level);

struct DeviceFormats {
    std::vector<tensor::DType> dtypes;  // to compute in, fastest first
    bool has_tf32 = false;
    bool has_int8 = false;
    bool is_gpu = false;
};
DeviceFormats formats_of(const device::Device& device);

/// Returns the precisions of a device; the first is the one that `auto` selects.
std::vector<device::Precision> available_precisions(const DeviceFormats& formats);

/// Returns the precision whose device::name_of is `name`. Throws Error(data) if there is none.
device::Precision precision_named(std::string_view name);

/// Returns the precision to compute in. Throws Error(usage), naming the available precisions, if
/// the device does not support `requested`.
device::Precision choose_precision(config::Precision requested, const DeviceFormats& formats);

}  // namespace hpcai::context
