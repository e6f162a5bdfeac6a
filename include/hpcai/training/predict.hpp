// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// What a model says of samples, in their order.
struct Predictions {
    std::vector<float> outputs;        // (samples, numbers) of the network's last node
    std::vector<std::int32_t> labels;  // (samples), -1 where a sample is not to be scored
};

/// Runs every sample that `source` hands to this rank. `network` is an inference network of the
/// source's batch size that says `numbers` of a sample; its working copies are refreshed first.
/// Throws what the source throws.
Predictions predict(graph::Network& network, data::BatchSource& source, std::int64_t numbers);

/// The ranks' predictions one after the other, at rank 0; elsewhere empty. Collective.
Predictions gather(comm::Communicator& group, Predictions mine);

}  // namespace hpcai::training
