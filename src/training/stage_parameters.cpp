// SPDX-License-Identifier: Apache-2.0
#include <hpcai/training/stage_parameters.hpp>

namespace hpcai::training {
namespace {

/// Returns a stage's parameters and running statistics in its store, in the order of its graph.
std::vector<std::span<float>> tensors_of_stage(const graph::Stage& stage,
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

/// The slice of a tensor of the model that a shard holds: `pieces` contiguous pieces of `length`
/// elements. Piece i, counted from 0, begins at element `first` + i x `stride`.
struct TensorSlice {
    std::span<float> tensor;
    std::size_t pieces = 1, length = 0, stride = 0, first = 0;

    std::size_t elements() const { return pieces * length; }

    std::vector<float> gather(std::span<const float> from) const {
        std::vector<float> values;
        values.reserve(elements());
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            const auto part = from.subspan(first + piece * stride, length);
            values.insert(values.end(), part.begin(), part.end());
        }
        return values;
    }
    void scatter(std::span<const float> values, std::span<float> to) const {
        for (std::size_t piece = 0; piece < pieces; ++piece) {
            std::ranges::copy(values.subspan(piece * length, length),
                              to.subspan(first + piece * stride).begin());
        }
    }
};

TensorSlice slice_of(const graph::Parameter& parameter, std::span<float> tensor) {
    if (!parameter.slice) return {tensor, 1, tensor.size(), 0, 0};
    const auto axis = static_cast<std::size_t>(parameter.slice->axis);
    std::int64_t pieces = 1, inner = 1;
    for (std::size_t i = 0; i < parameter.shape.rank(); ++i) {
        if (i < axis) pieces *= parameter.shape[i];
        if (i > axis) inner *= parameter.shape[i];
    }
    const auto size = [&](std::int64_t channels) {
        return static_cast<std::size_t>(channels * inner);
    };
    return {tensor, static_cast<std::size_t>(pieces), size(parameter.shape[axis]),
            size(parameter.slice->channels), size(parameter.slice->first)};
}

std::vector<TensorSlice> slices_of_model(const graph::Stage& stage, graph::ParameterStore& model) {
    std::vector<TensorSlice> slices;
    for (std::size_t id = 0; id < stage.parameters.size(); ++id) {
        slices.push_back(
            slice_of(stage.graph.parameters()[id], model.parameter(stage.parameters[id])));
    }
    for (std::size_t id = 0; id < stage.statistics.size(); ++id) {
        const graph::NormStatistics& described = stage.graph.statistics()[id];
        const std::int32_t index = stage.statistics[id];
        for (const std::span<float> tensor :
             {model.running_mean(index), model.running_variance(index)}) {
            slices.push_back({tensor, 1, static_cast<std::size_t>(described.channels), 0,
                              static_cast<std::size_t>(described.first_channel)});
        }
    }
    return slices;
}

}  // namespace

void copy_stage(const graph::Stage& stage, graph::ParameterStore& model,
                graph::ParameterStore& to) {
    const std::vector<TensorSlice> from = slices_of_model(stage, model);
    const std::vector<std::span<float>> parts = tensors_of_stage(stage, to);
    for (std::size_t part = 0; part < from.size(); ++part) {
        to.write(from[part].gather(model.read(from[part].tensor)), parts[part]);
    }
}

void all_gather_stages(comm::Communicator& group, const plan::Layout& layout,
                       const std::vector<graph::Stage>& stages, graph::ParameterStore& mine,
                       graph::ParameterStore& model) {
    for (std::size_t index = 0; index < stages.size(); ++index) {
        const std::vector<TensorSlice> slices = slices_of_model(stages[index], model);
        std::size_t elements = 0;
        for (const TensorSlice& slice : slices) elements += slice.elements();
        std::vector<float> values;
        values.reserve(elements);
        const auto number = static_cast<int>(index);
        const int root = layout.group_rank_of(number / layout.shards, 0, number % layout.shards);
        if (group.rank() == root) {
            for (const std::span<float> part : tensors_of_stage(stages[index], mine)) {
                const std::vector<float> read = mine.read(part);
                values.insert(values.end(), read.begin(), read.end());
            }
        }
        values.resize(elements);
        group.broadcast(std::as_writable_bytes(std::span(values)), root);
        std::span<const float> rest(values);
        for (const TensorSlice& slice : slices) {
            std::vector<float> tensor = model.read(slice.tensor);
            slice.scatter(rest.first(slice.elements()), tensor);
            model.write(tensor, slice.tensor);
            rest = rest.subspan(slice.elements());
        }
    }
}

}  // namespace hpcai::training
