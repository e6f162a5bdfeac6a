// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include <hpcai/config/config.hpp>
#include <hpcai/data/local_stage.hpp>

#include "stage_folder.hpp"

namespace hpcai::data {

struct LocalStage::State {
    staging::StageFolder folder;
    config::StagingCleanup cleanup;
    int node_rank;
    std::shared_ptr<std::atomic<std::int64_t>> lost;  // copies
};

}  // namespace hpcai::data
