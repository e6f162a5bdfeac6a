// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/data/batch_source.hpp>
#include <hpcai/graph/network.hpp>

namespace hpcai::training {

/// Gives a network those of its inputs "images", "labels", "boxes" and "keys" that it has.
void feed(graph::Network& network, const data::Batch& batch);

/// Gives it a batch of black images, or of zeros, without labels or boxes: all of it padding.
void feed_padding(graph::Network& network);

}  // namespace hpcai::training
