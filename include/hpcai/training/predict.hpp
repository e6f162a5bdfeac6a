// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// The softmax of every real sample that `source` hands to this rank, in order: (samples, classes)
/// fp32. `network` is an inference network of the source's batch size; its working copies are
/// refreshed first. Throws what the source throws.
std::vector<float> predict(graph::Network& network, data::BatchSource& source,
                           std::int64_t classes);

/// The ranks' rows one after the other, at rank 0; elsewhere empty. Collective.
std::vector<float> gather_rows(comm::Communicator& group, std::vector<float> mine);

}  // namespace hpcai::training
