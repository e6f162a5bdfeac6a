// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// Sets the inputs "images", "labels", "boxes" and "keys" (random seeds) that the network has.
void feed(graph::Network& network, const data::Batch& batch);

/// Sets all inputs to padding: labels to -1, other inputs to zero, which means no boxes.
void feed_padding(graph::Network& network);

/// A model's predictions, in the order of the samples.
struct Predictions {
    std::vector<float> outputs;        // (samples, columns), the network's output
    std::vector<std::int32_t> labels;  // (samples), -1: not scored
};

/// Predicts every sample that `source` gives to this rank. `network` is an inference network
/// that has the source's batch size and outputs `columns` values for each sample. First refreshes
/// the network's working copies of the parameters. Throws what the source throws.
Predictions predict(graph::Network& network, data::BatchSource& source, std::int64_t columns);

/// Gathers the predictions of all ranks in rank order at rank 0; empty elsewhere. Collective.
Predictions gather(comm::Communicator& group, Predictions mine);

}  // namespace hpcai::training
