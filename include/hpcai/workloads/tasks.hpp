// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/workloads/workload.hpp>

namespace hpcai::workloads {

Workload classification();
Workload detection();
Workload segmentation();

template <typename TaskEvaluator>
std::unique_ptr<const Evaluator> new_evaluator(const config::Config& config,
                                               const data::SampleSets& samples) {
    return std::make_unique<TaskEvaluator>(config, samples);
}

template <typename TaskCheck>
std::unique_ptr<PredictionCheck> new_check(const CheckedResult& result) {
    return std::make_unique<TaskCheck>(result);
}

}  // namespace hpcai::workloads
