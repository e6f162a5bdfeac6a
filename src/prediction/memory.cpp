// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include <hpcai/config/keys.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/ops/int8.hpp>

namespace hpcai::prediction {
namespace {

constexpr double kFp32Bytes = 4;
constexpr double kMebibyte = 1024 * 1024;

/// What one node's backward pass reads: whole values, and bytes that only it keeps.
struct BackwardReads {
    bool inputs = false;
    bool output = false;
    std::int64_t saved_bytes = 0;
};

struct ReadsOf {
    const graph::Graph& graph;
    const graph::Node& node;

    BackwardReads operator()(const ops::Convolution&) const { return {.inputs = true}; }
    BackwardReads operator()(const ops::Linear& op) const {
        return {.inputs = true, .output = op.relu};
    }
    BackwardReads operator()(const ops::BatchNorm& op) const {
        if (op.frozen) return {.output = op.relu};
        return {.inputs = true, .output = op.add};
    }
    BackwardReads operator()(const ops::GroupNorm&) const { return {.inputs = true}; }
    BackwardReads operator()(const ops::Bias& op) const { return {.output = op.relu}; }
    BackwardReads operator()(const ops::RpnLoss&) const { return {.inputs = true}; }
    BackwardReads operator()(const ops::RoiLoss&) const { return {.inputs = true}; }
    BackwardReads operator()(const ops::Relu&) const { return {.output = true}; }
    // The place of each window's maximum, one byte.
    BackwardReads operator()(const ops::MaxPool&) const {
        return {.saved_bytes = graph.value(node.output).shape.elements()};
    }
    // The level of each region; of each sample along its two axes two places and two weights.
    BackwardReads operator()(const ops::RoiAlign& op) const {
        const std::int64_t samples = 2 * op.pooled * op.sampling_ratio;
        return {.saved_bytes = op.regions[0] * op.regions[1] * (4 + samples * 16)};
    }
    BackwardReads operator()(const ops::SoftmaxCrossEntropy&) const {
        return {.inputs = true, .output = true};
    }
    template <typename Other>
    BackwardReads operator()(const Other&) const {
        return {};
    }
};

/// Bytes of one sample that stay from the forward to the backward pass; `graph` is of batch 1.
double kept_for_backward(const graph::Graph& graph, const ComputePrecision& precision) {
    std::set<graph::ValueId> kept;
    std::int64_t bytes = 0;
    for (const graph::Node& node : graph.nodes()) {
        if (!graph.is_trained(node)) continue;
        const BackwardReads reads = std::visit(ReadsOf{graph, node}, node.operation);
        if (reads.inputs) kept.insert(node.inputs.begin(), node.inputs.end());
        if (reads.output) kept.insert(node.output);
        bytes += reads.saved_bytes;
    }
    for (const graph::ValueId value : kept) bytes += value_bytes(graph, value, precision);
    return static_cast<double>(bytes);
}

/// Bytes of an element of filters or weights, once for forward and once for backward.
std::int64_t bytes_of_copies(const graph::Node& node, const ComputePrecision& precision) {
    const auto* convolution = std::get_if<ops::Convolution>(&node.operation);
    const auto bytes_for = [&](ops::Pass pass) {
        const bool int8 =
            precision.int8 && convolution != nullptr && computes_in_int8(*convolution, pass);
        return int8 ? std::int64_t{1} : precision.bytes;
    };
    return bytes_for(ops::Pass::forward) + bytes_for(ops::Pass::input_gradient);
}

double working_copies(const graph::Graph& graph, const ComputePrecision& precision) {
    std::int64_t bytes = 0;
    std::set<graph::ParameterId> counted;
    for (const graph::Node& node : graph.nodes()) {
        for (const graph::ParameterId id : node.parameters) {
            const graph::Parameter& parameter = graph.parameters()[static_cast<std::size_t>(id)];
            const bool has_copies = parameter.kind == graph::ParameterKind::filters ||
                                    parameter.kind == graph::ParameterKind::linear_weight;
            if (!has_copies || !counted.insert(id).second) continue;
            bytes += parameter.shape.elements() * bytes_of_copies(node, precision);
        }
    }
    return static_cast<double>(bytes);
}

/// The most that values take at a time while one sample is predicted; each lives from the node that
/// makes it to the last that reads it.
double largest_live(const graph::Graph& graph, const ComputePrecision& precision) {
    const auto& nodes = graph.nodes();
    std::vector<std::size_t> last_read(graph.values().size(), 0);
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        for (const graph::ValueId input : nodes[index].inputs) {
            last_read[static_cast<std::size_t>(input)] = index;
        }
    }
    std::int64_t live = 0, most = 0;
    for (std::size_t value = 0; value < graph.values().size(); ++value) {
        const auto id = static_cast<graph::ValueId>(value);
        if (graph.values()[value].producer == graph::kNoNode)
            live += value_bytes(graph, id, precision);
    }
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        live += value_bytes(graph, nodes[index].output, precision);
        most = std::max(most, live);
        const std::set<graph::ValueId> read(nodes[index].inputs.begin(), nodes[index].inputs.end());
        for (const graph::ValueId input : read) {
            if (last_read[static_cast<std::size_t>(input)] == index) {
                live -= value_bytes(graph, input, precision);
            }
        }
    }
    return static_cast<double>(most);
}

/// Of the fields of the weather, as they are kept; nothing where samples are pictures. Records have
/// their own type, which is not known without them.
std::optional<tensor::DType> field_type(const config::Config& config) {
    if (config.workload.kind != config::WorkloadKind::extreme_weather) return std::nullopt;
    switch (config.data.climate_precision) {
        case config::FieldPrecision::fp16:
            return tensor::DType::f16;
        case config::FieldPrecision::bf16:
            return tensor::DType::bf16;
        case config::FieldPrecision::fp32:
            break;
    }
    return tensor::DType::f32;
}

/// Of the network that evaluates.
double evaluation_bytes(const config::Config& config, int samples) {
    constexpr int kRows = 32;  // as benchmark::BaseModel has it
    const graph::Graph described =
        models::make_inference_model(config, {.dtype = field_type(config)});
    const graph::Graph built = config.training.fusion ? graph::fuse(described) : described;
    ComputePrecision precision = compute_precision(config);
    precision.int8 = false;
    const int rows = detects(config.workload) ? std::min(kRows, samples) : kRows;
    return rows * largest_live(built, precision) + working_copies(built, precision) / 2;
}

/// The prefetched batches and the one that is computed on, and what is cached.
double input_bytes(const config::Config& config, const graph::Graph& graph, int samples) {
    double sample = 0;
    for (std::size_t value = 0; value < graph.values().size(); ++value) {
        if (graph.values()[value].producer != graph::kNoNode) continue;
        sample += static_cast<double>(value_bytes(graph, static_cast<graph::ValueId>(value), {}));
    }
    const bool has_cache = config.data.kind != config::DataKind::climate_hdf5;
    const double cache = has_cache ? config.data.decoded_cache_mib : 0;
    return sample * samples * (config.data.prefetch_batches + 1) +
           (cache + config.data.resident_mib) * kMebibyte;
}

}  // namespace

ComputePrecision compute_precision(const config::Config& config) {
    switch (config.training.precision) {
        case config::Precision::bf16:
            return {"bf16", 2, false};
        case config::Precision::int8:
            return {"int8", 4, false, true};
        case config::Precision::mixed:
            return {"mixed", 2, false};
        case config::Precision::tf32:
            return {"tf32", 4, false};
        case config::Precision::fp32:
            return {"fp32", 4, false};
        case config::Precision::automatic:
            break;
    }
    if (config.device.kind == config::DeviceKind::cuda) return {"mixed", 2, false};
    return {"fp32", 4, true};
}

std::int64_t value_bytes(const graph::Graph& graph, graph::ValueId value,
                         const ComputePrecision& precision) {
    const graph::Value& described = graph.value(value);
    const auto bytes = described.dtype ? static_cast<std::int64_t>(size_of(*described.dtype))
                                       : std::int64_t{precision.bytes};
    return described.shape.elements() * bytes;
}

MemoryEstimate estimate_memory(const config::Config& config, int samples) {
    const graph::Graph described = models::make_model(config, {.dtype = field_type(config)});
    const graph::Graph built = config.training.fusion ? graph::fuse(described) : described;
    const ComputePrecision precision = compute_precision(config);
    const double parameter_bytes = kFp32Bytes * static_cast<double>(built.parameter_count());
    MemoryEstimate memory{
        .precision = precision.name,
        .parameters = parameter_bytes,
        .gradients = parameter_bytes,
        .optimizer_state = config::optimizer_states(config.training.optimizer) * parameter_bytes,
        .working_copies = working_copies(built, precision),
        .activations = samples * kept_for_backward(built, precision),
        .input = input_bytes(config, built, samples),
        .evaluation = evaluation_bytes(config, samples)};
    for (const graph::NormStatistics& statistics : built.statistics()) {
        memory.statistics += 2 * kFp32Bytes * static_cast<double>(statistics.channels);
    }
    return memory;
}

double MemoryEstimate::total() const {
    return parameters + gradients + optimizer_state + statistics + input + exchange +
           std::max(working_copies + activations, evaluation);
}

}  // namespace hpcai::prediction
