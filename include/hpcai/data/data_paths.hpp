// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>

namespace hpcai::data {

/// Throws Error(data), on all ranks, naming the key whose path rank 0 of `group` does not find;
/// reads nothing behind the paths. Collective.
void require_data_paths(const config::DataConfig& data, comm::Communicator& group);

}  // namespace hpcai::data
