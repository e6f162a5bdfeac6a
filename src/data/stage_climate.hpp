// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/comm/communicator.hpp>
#include <hpcai/config/config.hpp>
#include <hpcai/data/data_duplicator.hpp>

namespace hpcai::data {

/// Copies the HDF5 files or records of weather that data.staging wants, with the manifest beside
/// them. Returns `config` with the paths of the copies. Collective; throws Error(data) when the
/// files cannot be listed, and what the duplicator throws.
config::Config stage_climate(const config::Config& config, comm::Communicator& group,
                             DataDuplicator& duplicator);

}  // namespace hpcai::data
