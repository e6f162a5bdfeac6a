// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include <hpcai/comm/collectives.hpp>
#include <hpcai/training/feed.hpp>
#include <hpcai/training/predict.hpp>

namespace hpcai::training {

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
