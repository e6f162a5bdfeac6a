// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include <hpcai/base/progress_record.hpp>

#include "fields.hpp"

/// Every key of `groups/<m>/progress.json`, once.
namespace hpcai::report {

struct ProgressStateRow {
    ProgressState state;
    const char* word;
};

inline constexpr std::array kProgressStates{
    ProgressStateRow{ProgressState::training, "training"},
    ProgressStateRow{ProgressState::evaluating, "evaluating"},
    ProgressStateRow{ProgressState::finished, "finished"},
    ProgressStateRow{ProgressState::failed, "failed"},
    ProgressStateRow{ProgressState::stopped, "stopped"},
    ProgressStateRow{ProgressState::terminated, "terminated"},
    ProgressStateRow{ProgressState::unsaved, "unsaved"},
};

void describe(auto& fields, Any<ProgressRecord> auto& progress) {
    fields("schema", progress.schema);
    fields("state", progress.state);
    fields("reason", progress.reason);
    fields("host", progress.host);
    fields("epoch", progress.epoch);
    fields("epochs", progress.epochs);
    fields("step", progress.step);
    fields("steps", progress.steps);
    fields("loss", progress.loss);
    fields("images_per_second", progress.images_per_second);
    fields("seconds_left", progress.seconds_left);
    fields("written_unix_seconds", progress.written_unix_seconds);
}

}  // namespace hpcai::report
