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

/// A rank among those of its node.
struct PlaceOnNode {
    int ranks_sharing_cores = 1;  // this one too
    int local_rank = 0;
};

struct OpenDevice {
    std::unique_ptr<device::Device> device;
    std::string note;  // "; no GPU is used: ..." where auto found a driver, and yet took the CPU
};

/// The configured device: a CPU with this rank's threads, or the GPU of its local rank;
/// deterministic by run.deterministic. Throws Error(launch) or Error(usage) for a GPU that was
/// asked for and cannot be used.
OpenDevice open_device(const config::Config& config, const device::Cores& cores,
                       const PlaceOnNode& place);

/// What one rank tells all others about itself at the context.
struct RankFacts {
    int threads = 0;
    std::string device;
    std::string device_uuid;  // empty: a CPU
    device::Determinism determinism;
};

/// "ranks 1 and 3 share GPU-...", the first of those that do; empty if each has its own.
std::string describe_sharing(std::span<const RankFacts> by_world_rank);

/// Throws Error(launch) where some ranks have a GPU and some none, and where ranks share one at a
/// level other than custom.
void check_devices(std::span<const RankFacts> by_world_rank, config::Level level);

/// All that a device computes in; the one that `auto` takes first.
std::vector<device::Precision> available_precisions(const device::Device& device);

/// That of which device::name_of is `name`. Throws Error(data) for another text.
device::Precision precision_named(std::string_view name);

/// The precision to compute in. Throws Error(usage), naming what there is, for one that the device
/// lacks.
device::Precision choose_precision(config::Precision wanted, const device::Device& device);

}  // namespace hpcai::context
