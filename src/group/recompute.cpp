// SPDX-License-Identifier: Apache-2.0
#include <hpcai/group/model.hpp>
#include <hpcai/group/recompute.hpp>
#include <hpcai/training/weights_file.hpp>

#include "predict.hpp"

namespace hpcai::group {

training::Predictions predict_test_samples(const context::RunContext& context,
                                           const context::Resources& resources,
                                           const std::filesystem::path& weights) {
    const graph::Graph graph = make_training_graph(context, *resources.samples.validation);
    graph::ParameterStore store(graph, *resources.device, 0);
    training::read_weights(weights, graph, store);
    const auto self = comm::make_self_communicator();
    return predict(context, resources, store, resources.samples.validation, *self).predictions;
}

}  // namespace hpcai::group
