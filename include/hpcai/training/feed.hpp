// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// Sets those of the inputs "images", "labels", "boxes" and "keys" that the network has.
void feed(graph::Network& network, const data::Batch& batch);

/// Sets all inputs to padding: labels to -1 and all others to zero, which means no boxes.
void feed_padding(graph::Network& network);

}  // namespace hpcai::training
