// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <hpcai/workloads/prediction_check.hpp>

namespace hpcai::workloads {

std::unique_ptr<PredictionCheck> make_detection_check(const CheckedResult& result);

}  // namespace hpcai::workloads
