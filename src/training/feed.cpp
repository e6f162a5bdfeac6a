// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <hpcai/data/resident_pictures.hpp>
#include <hpcai/training/feed.hpp>

namespace hpcai::training {

void feed(graph::Network& network, const data::Batch& batch) {
    const auto set = [&](const char* name, const tensor::TensorView& view) {
        if (network.has_input(name)) network.set_input(name, view.raw());
    };
    if (batch.pictures != nullptr) {
        std::byte* images = network.input("images").data();
        batch.pictures->enqueue(batch, reinterpret_cast<std::uint8_t*>(images));
    } else {
        set("images", batch.images);
    }
    set("labels", batch.labels);
    set("boxes", batch.boxes);
    set("keys", batch.keys);
}

void feed_padding(graph::Network& network) {
    for (const graph::Value& value : network.graph().values()) {
        if (value.producer != graph::kNoNode) continue;
        // The padding label is -1: all bits are set.
        const std::byte fill{value.name == "labels" ? std::uint8_t{0xFF} : std::uint8_t{0}};
        const std::vector<std::byte> bytes(device::storage_bytes(value.shape, *value.dtype), fill);
        network.set_input(value.name, bytes);
    }
}

}  // namespace hpcai::training
