// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <hpcai/base/log.hpp>
#include <hpcai/base/progress_record.hpp>
#include <hpcai/base/run_record.hpp>
#include <hpcai/comm/communicator.hpp>
#include <hpcai/comm/end_game.hpp>
#include <hpcai/comm/gradient_reducer.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/training/predict.hpp>

#include "base_model.hpp"
#include "start.hpp"

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

/// Trains this rank's model with its group, evaluates it and stores what came of it in
/// groups/<m>/ (weights, predictions, record). Never throws: a failure becomes the status. Makes
/// `reducer`, which outlives MPI like the model. Collective in the group.
GroupOutcome run_group(const Start& start, BaseModel& model, comm::Communicator& group,
                       std::unique_ptr<comm::GradientReducer>& reducer, Logger& log);

/// What a group that did not finish has stored of itself; without content when it stored nothing.
GroupResult read_failed_group(const Start& start, int group);

/// groups/<m> of a result directory.
std::filesystem::path group_directory(const std::filesystem::path& output, int group);

}  // namespace hpcai::benchmark
