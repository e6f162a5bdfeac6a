// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <hpcai/comm/membership_agreement.hpp>
#include <hpcai/evaluation/detection.hpp>
#include <hpcai/records/progress_record.hpp>
#include <hpcai/records/run_record.hpp>
#include <hpcai/training/predict.hpp>

namespace hpcai::group {

/// The outcome of a group's training on one rank. Only the leader has predictions.
struct GroupOutcome {
    comm::GroupStatus status;
    GroupResult result;
    training::Predictions validation;
    // A detector's detections that were read from its file replace validation.outputs.
    std::optional<std::vector<evaluation::Detection>> detections = {};
    std::vector<std::uint8_t> out_of_bag;      // [training sample], 1 if not in this bootstrap
    training::Predictions out_of_bag_samples;  // predictions of those samples, in order
    bool has_lost_leader = false;              // the group's first rank does not answer
    bool is_acting_leader = false;             // this rank is the first one that answers
    ProgressState end = ProgressState::failed;
    double stop_seconds = 0;  // GroupStop::seconds() if the group was asked to stop
};

}  // namespace hpcai::group
