// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/training/predict.hpp>

namespace hpcai::training {

std::vector<float> predict(graph::Network& network, data::BatchSource& source,
                           std::int64_t classes) {
    graph::Observer nobody;
    network.prepare(nobody);
    std::vector<float> all;
    for (std::int64_t index = 0; index < source.batches(); ++index) {
        const data::Batch& batch = source.next();
        network.set_input("images", std::as_bytes(batch.images.as<std::uint8_t>()));
        network.set_input("labels", std::as_bytes(batch.labels.as<std::int32_t>()));
        network.forward(nobody);
        std::vector<float> rows(static_cast<std::size_t>(batch.images.shape[0] * classes));
        network.read_probabilities(rows);
        all.insert(all.end(), rows.begin(), rows.begin() + batch.samples * classes);
    }
    return all;
}

std::vector<float> gather_rows(comm::Communicator& group, std::vector<float> mine) {
    constexpr int kTag = 1;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()));
    const auto count = static_cast<std::int64_t>(mine.size());
    group.all_gather(std::as_bytes(std::span(&count, 1)),
                     std::as_writable_bytes(std::span(counts)));
    if (group.rank() != 0) {
        group.send(std::as_bytes(std::span(mine)), 0, kTag);
        return {};
    }
    for (int rank = 1; rank < group.size(); ++rank) {
        std::vector<float> rows(static_cast<std::size_t>(counts[static_cast<std::size_t>(rank)]));
        group.receive(std::as_writable_bytes(std::span(rows)), rank, kTag);
        mine.insert(mine.end(), rows.begin(), rows.end());
    }
    return mine;
}

}  // namespace hpcai::training
