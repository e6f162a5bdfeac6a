// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <vector>

#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/ops/backward_reads.hpp>
#include <hpcai/ops/int8.hpp>
#include <hpcai/plan/pipeline.hpp>

namespace hpcai::prediction {
namespace {

constexpr double kFp32Bytes = 4;
constexpr double kMebibyte = 1024 * 1024;
/// Resident of a rank with no model, as measured: its own code and data, the pages of oneDNN, Open
/// MPI and HDF5 that it touches, and MPI's buffers.
constexpr double kProgramBytes = 60e6;

/// Bytes that a node saves for its backward pass and nothing else reads.
struct SavedBytes {
    const graph::Graph& graph;
    const graph::Node& node;

    // The place of each window's maximum, one byte.
    std::int64_t operator()(const ops::MaxPool&) const {
        return graph.value(node.output).shape.elements();
    }
    // The level of each region; of each sample along its two axes two places and two weights.
    std::int64_t operator()(const ops::RoiAlign& op) const {
        const std::int64_t samples = 2 * op.pooled * op.sampling_ratio;
        return op.regions[0] * op.regions[1] * (4 + samples * 16);
    }
    template <typename Other>
    std::int64_t operator()(const Other&) const {
        return 0;
    }
};

/// Bytes of one sample that stay from the forward to the backward pass; `graph` is of batch 1.
double kept_for_backward(const graph::Graph& graph, const ComputePrecision& precision) {
    std::set<graph::ValueId> kept;
    std::int64_t bytes = 0;
    for (const graph::Node& node : graph.nodes()) {
        if (!graph.is_trained(node)) continue;
        const ops::BackwardReads reads = backward_reads(node.operation);
        if (reads.inputs) kept.insert(node.inputs.begin(), node.inputs.end());
        if (reads.output) kept.insert(node.output);
        bytes += std::visit(SavedBytes{graph, node}, node.operation);
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
            const graph::Parameter& parameter = graph.parameters()[id];
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
            last_read[input] = index;
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
            if (last_read[input] == index) {
                live -= value_bytes(graph, input, precision);
            }
        }
    }
    return static_cast<double>(most);
}

/// Of the fields of the weather, as they are kept; nothing where samples are pictures. Records have
/// their own type, which is not known without them.
std::optional<tensor::DType> field_type(const config::Config& config) {
    if (!has_fields(config.data)) return std::nullopt;
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
    const graph::Graph described =
        models::make_inference_model(config, {.dtype = field_type(config)});
    const graph::Graph built = config.training.fusion ? graph::fuse(described) : described;
    ComputePrecision precision = compute_precision(config);
    precision.int8 = false;
    return models::evaluation_rows(config, samples) * largest_live(built, precision) +
           working_copies(built, precision) / 2;
}

/// Of what a model reads of one sample, and learns of it.
double sample_bytes(const graph::Graph& graph) {
    double sample = 0;
    for (std::size_t value = 0; value < graph.values().size(); ++value) {
        if (graph.values()[value].producer != graph::kNoNode) continue;
        sample += static_cast<double>(value_bytes(graph, static_cast<graph::ValueId>(value), {}));
    }
    return sample;
}

/// The prefetched batches and the one that is computed on, and what is cached, of no more samples
/// than there are. Decoded photographs are larger than what a model reads of them, fields are not.
double input_bytes(const config::Config& config, const graph::Graph& graph, int rows,
                   const Quantity& training_samples) {
    const double sample = sample_bytes(graph);
    const bool has_cache = config.data.kind != config::DataKind::climate_hdf5;
    double cache = has_cache ? config.data.decoded_cache_mib * kMebibyte : 0;
    if (config.data.kind == config::DataKind::climate_synthetic && training_samples.value) {
        const double samples = *training_samples.value + config.data.synthetic_validation_samples;
        cache = std::min(cache, samples * sample);
    }
    return sample * rows * (config.data.prefetch_batches + 1) + cache +
           config.data.resident_mib * kMebibyte;
}

/// Two doubles a channel in each direction, of one micro-batch.
double statistics_bytes(const graph::Graph& graph) {
    double channels = 0;
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        channels += static_cast<double>(statistics.channels);
    }
    return 4 * sizeof(double) * channels;
}

}  // namespace

ComputePrecision compute_precision(const config::Config& config) {
    switch (config.training.precision) {
        case config::Precision::bf16:
            return {"bf16", 2, false};
        case config::Precision::int8:
            return {"int8", 4, false, true};
        case config::Precision::fp16:
            return {"fp16", 2, false};
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

ModelParts cut_model(const config::Config& config, const plan::Layout& layout) {
    const graph::Graph described = models::make_model(config, {.dtype = field_type(config)});
    ModelParts parts{config.training.fusion ? graph::fuse(described) : described, {}, {}, {}};
    const int element_bytes = static_cast<int>(compute_precision(config).bytes);
    std::vector<graph::Stage> slices = graph::cut(parts.whole, layout.stages, layout.parts);
    for (int stage = 0; stage < layout.stages; ++stage) {
        graph::ExchangedBytes& most = parts.exchanged.emplace_back();
        for (int part = 0; part < layout.parts; ++part) {
            const auto slice = static_cast<std::size_t>(stage * layout.parts + part);
            const graph::ExchangedBytes bytes =
                graph::exchanged_bytes(slices[slice].graph, element_bytes);
            most.sent = std::max(most.sent, bytes.sent);
            most.largest = std::max(most.largest, bytes.largest);
            if (part + 1 == layout.parts) parts.stages.push_back(std::move(slices[slice]));
        }
        parts.in_flight.push_back(plan::micro_batches_in_flight(plan::pipeline_tasks(
            config.parallel.schedule, layout.stages, stage, layout.micro_batches)));
    }
    return parts;
}

MemoryEstimate estimate_memory(const config::Config& config, const plan::Layout& layout,
                               const ModelParts& parts, const std::vector<double>& exchange,
                               const Quantity& training_samples) {
    const int samples = layout.rows(config.training.batch_size);
    const ComputePrecision precision = compute_precision(config);
    const int states = config::optimizer_states(config.training.optimizer);
    const int gradient_copies = layout.micro_batches > 1 ? 2 : 1;
    MemoryEstimate most;
    for (std::size_t stage = 0; stage < parts.stages.size(); ++stage) {
        const graph::Graph& graph = parts.stages[stage].graph;
        const double bytes = kFp32Bytes * static_cast<double>(graph.parameter_count());
        MemoryEstimate memory{
            .precision = precision.name,
            .parameters = bytes,
            .gradients = gradient_copies * bytes,
            .optimizer_state = states * bytes,
            .working_copies = working_copies(graph, precision),
            .activations = samples * parts.in_flight[stage] * kept_for_backward(graph, precision)};
        memory.exchange = exchange[stage];
        memory.program = config.device.kind == config::DeviceKind::cuda ? 0 : kProgramBytes;
        if (stage == 0)
            memory.input =
                input_bytes(config, parts.whole, samples * layout.micro_batches, training_samples);
        for (const graph::NormStatistics& statistics : graph.statistics()) {
            memory.statistics += 2 * kFp32Bytes * static_cast<double>(statistics.channels);
        }
        memory.evaluation = evaluation_bytes(config, samples);
        memory.evaluates_between = config.run.evaluate_epochs > 0;
        if (layout.slices() > 1) {
            const double model_bytes =
                2 * kFp32Bytes * static_cast<double>(parts.whole.parameter_count());
            // At the end collected beside the slice, which then goes.
            const double slice_bytes = memory.gradients + memory.optimizer_state + bytes;
            memory.evaluation =
                memory.evaluates_between
                    ? memory.evaluation + model_bytes
                    : std::max(model_bytes, memory.evaluation + model_bytes - slice_bytes);
        }
        if (memory.total() > most.total()) most = memory;
    }
    return most;
}

namespace {

/// Of the model's nodes, which parts have under other names.
std::vector<std::string> first_names_of_stages(const graph::Graph& whole, int stages) {
    std::vector<std::string> names{whole.nodes().front().name};
    for (const std::size_t end : graph::stage_ends(whole, stages)) {
        names.push_back(whole.nodes()[end].name);
    }
    return names;
}

}  // namespace

PipelineEstimate estimate_pipeline(const config::Config& config, const plan::Layout& layout,
                                   const ModelParts& parts) {
    PipelineEstimate pipeline{
        .schedule = config::value_text(config, "parallel.schedule"),
        .samples = layout.rows(config.training.batch_size),
        .bubble_fraction = plan::bubble_fraction(layout.stages, layout.micro_batches)};
    // What the first part hands on of the samples of a step.
    const double handed =
        (layout.parts - 1) * sample_bytes(parts.whole) * layout.micro_batches * pipeline.samples;
    const std::vector<std::string> first_names = first_names_of_stages(parts.whole, layout.stages);
    double most_flops = 0, before = 0;
    for (std::size_t index = 0; index < parts.stages.size(); ++index) {
        const graph::Stage& stage = parts.stages[index];
        const auto flops =
            static_cast<double>(graph::flops(stage.graph, metrics::kOfficialLedger).training());
        double behind = 0;
        for (const graph::ValueId output : stage.graph.outputs()) {
            behind += pipeline.samples * static_cast<double>(value_bytes(
                                             stage.graph, output, compute_precision(config)));
        }
        const graph::ExchangedBytes& exchanged = parts.exchanged[index];
        const double of_samples = index == 0 ? handed : 0;
        pipeline.stages.push_back(
            {.first_node = first_names[index],
             .nodes = static_cast<int>(stage.nodes),
             .flops = flops,
             .parameters = stage.graph.parameter_count(),
             .boundary_bytes = behind,
             .in_flight = parts.in_flight[index],
             .statistics_bytes = layout.micro_batches * statistics_bytes(stage.graph),
             .part_buffer_bytes =
                 std::max(pipeline.samples * static_cast<double>(exchanged.largest), of_samples) +
                 (layout.parts > 1 ? of_samples / (layout.parts - 1) : 0)});
        pipeline.message_bytes =
            std::max(pipeline.message_bytes, layout.micro_batches * (before + behind));
        pipeline.part_bytes =
            std::max(pipeline.part_bytes, of_samples + static_cast<double>(layout.micro_batches) *
                                                           pipeline.samples *
                                                           static_cast<double>(exchanged.sent));
        before = behind;
        most_flops = std::max(most_flops, flops);
    }
    const bool is_whole = layout.slices() == 1;
    pipeline.largest_share =
        is_whole ? 1
                 : most_flops / static_cast<double>(
                                    graph::flops(parts.whole, metrics::kOfficialLedger).training());
    return pipeline;
}

double MemoryEstimate::total() const {
    const double training = working_copies + activations;
    return parameters + gradients + optimizer_state + statistics + input + exchange + program +
           (evaluates_between ? training + evaluation : std::max(training, evaluation));
}

}  // namespace hpcai::prediction
