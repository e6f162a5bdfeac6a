// SPDX-License-Identifier: Apache-2.0
#include <hpcai/models/make_model.hpp>
#include <hpcai/models/resnet50.hpp>

namespace hpcai::models {

graph::Graph make_model(const config::Config& config, std::int64_t batch,
                        std::int64_t statistics_samples) {
    ResNet50 options;
    options.batch = batch;
    options.image_size = config.workload.image_size;
    options.channels = config.workload.channels;
    options.classes = config.workload.classes;
    options.stride_on_3x3 = config.workload.model == config::Model::resnet50_v1_5;
    options.zero_gamma = config.training.zero_gamma;
    options.label_smoothing = config.training.label_smoothing;
    options.norm_momentum = config.training.batch_norm_momentum;
    options.statistics_samples = statistics_samples;
    options.mean = config.data.mean;
    options.standard_deviation = config.data.standard_deviation;
    return make_resnet50(options);
}

}  // namespace hpcai::models
