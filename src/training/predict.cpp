// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/training/feed.hpp>
#include <hpcai/training/predict.hpp>

namespace hpcai::training {
namespace {

template <typename T>
void gather_values(comm::Communicator& group, std::vector<T>& mine) {
    constexpr int kTag = 1;
    std::vector<std::int64_t> counts(static_cast<std::size_t>(group.size()));
    const auto count = static_cast<std::int64_t>(mine.size());
    group.all_gather(std::as_bytes(std::span(&count, 1)),
                     std::as_writable_bytes(std::span(counts)));
    if (group.rank() != 0) {
        group.send(std::as_bytes(std::span(mine)), 0, kTag);
        mine.clear();
        return;
    }
    for (int rank = 1; rank < group.size(); ++rank) {
        const std::size_t before = mine.size();
        mine.resize(before + static_cast<std::size_t>(counts[rank]));
        group.receive(std::as_writable_bytes(std::span(mine).subspan(before)), rank, kTag);
    }
}

}  // namespace

Predictions predict(graph::Network& network, data::BatchSource& source, std::int64_t numbers) {
    graph::Observer nobody;
    network.prepare(nobody);
    Predictions all;
    for (std::int64_t index = 0; index < source.batches(); ++index) {
        const data::Batch& batch = source.next();
        feed(network, batch);
        network.forward(nobody);
        std::vector<float> rows(static_cast<std::size_t>(batch.images.shape[0] * numbers));
        network.read_output(rows);
        all.outputs.insert(all.outputs.end(), rows.begin(), rows.begin() + batch.samples * numbers);
        const auto labels = batch.labels.as<std::int32_t>();
        all.labels.insert(all.labels.end(), labels.begin(), labels.begin() + batch.samples);
    }
    return all;
}

Predictions gather(comm::Communicator& group, Predictions mine) {
    gather_values(group, mine.outputs);
    gather_values(group, mine.labels);
    return mine;
}

}  // namespace hpcai::training
