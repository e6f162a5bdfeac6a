// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// Sets the inputs "images", "labels", "boxes" and "keys", as far as the network has them.
void feed(graph::Network& network, const data::Batch& batch);

/// Sets all inputs to padding: labels to -1, other inputs to zero, which means no boxes.
void feed_padding(graph::Network& network);

}  // namespace hpcai::training
