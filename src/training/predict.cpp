// SPDX-License-Identifier: Apache-2.0
#include <hpcai/comm/collectives.hpp>
#include <hpcai/data/device_pictures.hpp>
#include <hpcai/training/predict.hpp>

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

Predictions predict(graph::Network& network, data::BatchSource& source, std::int64_t columns) {
    graph::Observer no_observer;
    network.prepare(no_observer);
    Predictions all;
    for (std::int64_t index = 0; index < source.batches(); ++index) {
        const data::Batch& batch = source.next();
        feed(network, batch);
        network.forward(no_observer);
        std::vector<float> rows(static_cast<std::size_t>(batch.images.shape[0] * columns));
        network.read_output(rows);
        all.outputs.insert(all.outputs.end(), rows.begin(), rows.begin() + batch.samples * columns);
        const auto labels = batch.labels.as<std::int32_t>();
        all.labels.insert(all.labels.end(), labels.begin(), labels.begin() + batch.samples);
    }
    return all;
}

Predictions gather(comm::Communicator& group, Predictions mine) {
    std::vector<float> outputs = comm::gather(group, std::move(mine.outputs));
    return {std::move(outputs), comm::gather(group, std::move(mine.labels))};
}

}  // namespace hpcai::training
