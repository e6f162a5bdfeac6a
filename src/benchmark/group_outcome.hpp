// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hpcai/base/progress_record.hpp>
#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/end_game.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/training/predict.hpp>

namespace hpcai::benchmark {

/// What a group has when it is done; the predictions are at its leader only.
struct GroupOutcome {
    comm::GroupStatus status;
    GroupResult result;
    training::Predictions validation;
    // In place of validation.outputs: of a detector, read from its file
    std::optional<std::vector<evaluation::Detection>> detections = {};
    std::vector<std::uint8_t> out_of_bag;      // (training samples) 1: not in this bootstrap
    training::Predictions out_of_bag_samples;  // the ones of out_of_bag, in order
    bool has_lost_leader = false;              // the group's first rank does not answer
    bool speaks_for_leader = false;            // this rank is the first that does
    ProgressState end = ProgressState::failed;
    double stop_seconds = 0;  // GroupStop::seconds(), where it was asked to stop
};

}  // namespace hpcai::benchmark
