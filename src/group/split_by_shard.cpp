// SPDX-License-Identifier: Apache-2.0
#include "split_by_shard.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/collectives.hpp>
#include <hpcai/config/keys.hpp>

namespace hpcai::group {
namespace {

/// Of small activations with few and many channels, as parts have them, in the layout of this
/// rank's device.
std::uint64_t fingerprint_of_layout(const context::Resources& resources) {
    device::Device& device = *resources.device;
    std::uint64_t fingerprint = 0;
    for (const std::int64_t channels : {3, 4, 64}) {
        const tensor::Shape shape{1, 2, 2, channels};
        const std::size_t bytes = device.storage_bytes(shape, resources.precision.compute);
        const auto memory = device.allocate(bytes);
        std::vector<float> ramp(static_cast<std::size_t>(shape.elements()));
        std::iota(ramp.begin(), ramp.end(), 1.0f);
        device.store_channels_last(memory->data(), shape, resources.precision.compute, ramp);
        fingerprint = 31 * fingerprint + device.hash({static_cast<const float*>(memory->data()),
                                                      bytes / sizeof(float)});
    }
    return fingerprint;
}

}  // namespace

std::unique_ptr<comm::Communicator> split_by_shard(const context::RunContext& context,
                                                   const context::Resources& resources,
                                                   comm::Communicator& group) {
    const plan::Layout& layout = context.controller.layout();
    if (layout.slices() == 1) return nullptr;
    const auto all = comm::all_gather(group, fingerprint_of_layout(resources));
    require(std::ranges::count(all, all.front()) == group.size(), ExitCode::launch,
            "parallel.mode {} needs ranks that keep activations in one layout, and those of "
            "group {} do not; try device.layout: channels_last",
            config::value_text(context.config, "parallel.mode"), context.place.group);
    return group.split(layout.slice_of(group.rank()), group.rank());
}

}  // namespace hpcai::group
