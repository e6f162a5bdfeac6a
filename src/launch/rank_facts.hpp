// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/context/devices.hpp>

namespace hpcai::launch {

/// Returns the facts of every rank's device, by world rank. Collective.
std::vector<context::RankFacts> gather_rank_facts(const device::Device& device,
                                                  comm::Communicator& everyone);

}  // namespace hpcai::launch
