// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <hpcai/records/run_record.hpp>
#include <hpcai/records/step_record.hpp>

namespace hpcai::report {

/// What one sample costs in a layer, in the convention of the scores.
struct LayerRecord {
    std::string node;
    std::string operation;
    std::string output;  // "112x112x64"
    std::int64_t parameters = 0;
    std::int64_t forward_flops = 0;
    std::int64_t training_flops = 0;
};

struct PageContent {
    const RunRecord& record;
    std::vector<std::vector<StepRecord>> steps;  // by group; an empty list: it left none
    std::vector<std::string> remarks;            // on steps that could not be read
    std::vector<LayerRecord> layers;             // may be empty
};

}  // namespace hpcai::report
