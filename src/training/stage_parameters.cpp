// SPDX-License-Identifier: Apache-2.0
#include <hpcai/training/stage_parameters.hpp>

namespace hpcai::training {
namespace {

/// A stage's parameters and running statistics in a store, in its graph's order.
std::vector<std::span<float>> parts_of_stage(const graph::Stage& stage,
                                             graph::ParameterStore& store) {
    std::vector<std::span<float>> parts;
    for (std::size_t id = 0; id < stage.parameters.size(); ++id) {
        parts.push_back(store.parameter(static_cast<graph::ParameterId>(id)));
    }
    for (std::size_t id = 0; id < stage.statistics.size(); ++id) {
        parts.push_back(store.running_mean(static_cast<std::int32_t>(id)));
        parts.push_back(store.running_variance(static_cast<std::int32_t>(id)));
    }
    return parts;
}

/// The same of the model's store.
std::vector<std::span<float>> parts_of_model(const graph::Stage& stage,
                                             graph::ParameterStore& store) {
    std::vector<std::span<float>> parts;
    for (const graph::ParameterId id : stage.parameters) parts.push_back(store.parameter(id));
    for (const std::int32_t id : stage.statistics) {
        parts.push_back(store.running_mean(id));
        parts.push_back(store.running_variance(id));
    }
    return parts;
}

}  // namespace

void copy_stage(const graph::Stage& stage, graph::ParameterStore& model,
                graph::ParameterStore& to) {
    const std::vector<std::span<float>> from = parts_of_model(stage, model);
    const std::vector<std::span<float>> places = parts_of_stage(stage, to);
    for (std::size_t part = 0; part < from.size(); ++part) {
        to.write(model.read(from[part]), places[part]);
    }
}

void collect_stages(comm::Communicator& group, const plan::Layout& layout,
                    const std::vector<graph::Stage>& stages, graph::ParameterStore& mine,
                    graph::ParameterStore& model) {
    for (std::size_t index = 0; index < stages.size(); ++index) {
        const std::vector<std::span<float>> places = parts_of_model(stages[index], model);
        std::size_t elements = 0;
        for (const std::span<float> place : places) elements += place.size();
        std::vector<float> values;
        values.reserve(elements);
        const int root = layout.group_rank_of(static_cast<int>(index), 0);
        if (group.rank() == root) {
            for (const std::span<float> part : parts_of_stage(stages[index], mine)) {
                const std::vector<float> read = mine.read(part);
                values.insert(values.end(), read.begin(), read.end());
            }
        }
        values.resize(elements);
        group.broadcast(std::as_writable_bytes(std::span(values)), root);
        std::span<const float> rest(values);
        for (const std::span<float> place : places) {
            model.write(rest.first(place.size()), place);
            rest = rest.subspan(place.size());
        }
    }
}

}  // namespace hpcai::training
