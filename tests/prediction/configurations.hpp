// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hpcai/base/error.hpp>
#include <hpcai/prediction/estimate.hpp>

#include "support/example_roofline.hpp"

namespace hpcai::prediction {

inline constexpr double kParameters = 25'557'032;         // of torchvision's resnet50
inline constexpr double kTrainingFlops = 24'610'397'184;  // 3 x 8 203 465 728, v1.5, table3

/// Returns the official workload with batches of 256, on a folder whose files were not counted.
inline config::Config official() {
    config::Config config;
    config.data.kind = config::DataKind::image_folder;
    config.data.path = "imagenet/train";
    config.training.precision = config::Precision::fp32;
    return config;
}

/// Returns one base model in stages.
inline config::Config staged(int stages, int micro_batches) {
    config::Config config = official();
    config.bagging.groups = 1;
    config.parallel = {config::ParallelMode::pipeline, {}, stages, micro_batches};
    return config;
}

/// Returns the error's code; `ok` without an error.
inline ExitCode refusal(const config::Config& config, const EstimateRequest& request) {
    try {
        estimate(config, request);
    } catch (const Error& error) {
        return error.code();
    }
    return ExitCode::ok;
}

/// Returns models on one rank each, with `samples` samples per step and one thread per rank.
inline config::Config single(int samples) {
    config::Config config = official();
    config.bagging.degree = 1;
    config.training.batch_size = samples;
    config.device.threads = 1;
    return config;
}

inline EstimateRequest measured(int ranks) {
    EstimateRequest request{.ranks = ranks, .ranks_per_node = ranks};
    request.roofline = example_roofline();
    return request;
}

}  // namespace hpcai::prediction
