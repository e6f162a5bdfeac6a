// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>

#include <hpcai/config/keys.hpp>
#include <hpcai/metrics/ledger.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/pipeline.hpp>

#include "estimate_parts.hpp"

namespace hpcai::prediction {
namespace {

constexpr double kFp32Bytes = 4;
constexpr double kMebibyte = 1024 * 1024;
/// Measured resident memory of a rank without a model: code, data, libraries and MPI's buffers.
constexpr double kProgramBytes = 60e6;

/// Returns the bytes that a node saves for its backward pass, in addition to values of the graph.
std::int64_t saved_bytes(const graph::Graph& graph, const graph::Node& node) {
    // One byte for the position of each window's maximum.
    if (std::holds_alternative<ops::MaxPool>(node.operation)) {
        return graph.value(node.output).shape.elements();
    }
    const auto* op = std::get_if<ops::RoiAlign>(&node.operation);
    if (op == nullptr) return 0;
    // A level per region; 2 indices and 2 weights per sampling point of an axis; 4 bytes each.
    const std::int64_t points = 2 * op->pooled * op->sampling_ratio;  // on both axes
    return op->regions[0] * op->regions[1] * (4 + points * 16);
}

/// Returns the bytes that are kept for the backward pass; `graph` has batch size 1.
double kept_activation_bytes(const graph::Graph& graph, const ComputePrecision& precision) {
    std::set<graph::ValueId> kept;
    std::int64_t bytes = 0;
    for (const graph::Node& node : graph.nodes()) {
        if (!graph.is_trained(node)) continue;
        const ops::BackwardReads reads = backward_reads(node.operation);
        if (reads.inputs) kept.insert(node.inputs.begin(), node.inputs.end());
        if (reads.output) kept.insert(node.output);
        bytes += saved_bytes(graph, node);
    }
    for (const graph::ValueId value : kept) bytes += value_bytes(graph, value, precision);
    return static_cast<double>(bytes);
}

/// Returns the bytes of a weight in both working copies together, for forward and for backward.
std::int64_t copy_bytes_per_element(const graph::Node& node, const ComputePrecision& precision) {
    const auto* convolution = std::get_if<ops::Convolution>(&node.operation);
    const auto bytes_for = [&](ops::Pass pass) {
        const bool int8 =
            precision.int8 && convolution != nullptr && computes_in_int8(*convolution, pass);
        return int8 ? std::int64_t{1} : precision.bytes;
    };
    return bytes_for(ops::Pass::forward) + bytes_for(ops::Pass::input_gradient);
}

double working_copy_bytes(const graph::Graph& graph, const ComputePrecision& precision) {
    std::int64_t bytes = 0;
    std::set<graph::ParameterId> counted;
    for (const graph::Node& node : graph.nodes()) {
        for (const graph::ParameterId id : node.parameters) {
            const graph::Parameter& parameter = graph.parameters()[id];
            const bool has_copies = parameter.kind == graph::ParameterKind::filters ||
                                    parameter.kind == graph::ParameterKind::linear_weight;
            if (!has_copies || !counted.insert(id).second) continue;
            bytes += parameter.shape.elements() * copy_bytes_per_element(node, precision);
        }
    }
    return static_cast<double>(bytes);
}

/// Returns the bytes of the values that no node produces: the inputs and labels of a model.
std::int64_t graph_input_bytes(const graph::Graph& graph, const ComputePrecision& precision) {
    std::int64_t bytes = 0;
    for (graph::ValueId value = 0; value < std::ssize(graph.values()); ++value) {
        if (graph.value(value).producer != graph::kNoNode) continue;
        bytes += value_bytes(graph, value, precision);
    }
    return bytes;
}

/// Returns the peak bytes in inference of one sample. A value is live until its last read.
double peak_live_bytes(const graph::Graph& graph, const ComputePrecision& precision) {
    const auto& nodes = graph.nodes();
    std::vector<std::size_t> last_read(graph.values().size(), 0);
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        for (const graph::ValueId input : nodes[index].inputs) last_read[input] = index;
    }
    std::int64_t live = graph_input_bytes(graph, precision), peak = 0;
    for (std::size_t index = 0; index < nodes.size(); ++index) {
        live += value_bytes(graph, nodes[index].output, precision);
        peak = std::max(peak, live);
        const std::set<graph::ValueId> read(nodes[index].inputs.begin(), nodes[index].inputs.end());
        for (const graph::ValueId input : read) {
            if (last_read[input] == index) live -= value_bytes(graph, input, precision);
        }
    }
    return static_cast<double>(peak);
}

/// Returns the in-memory type of climate fields; nothing for images. Ignores that transcoded
/// files may have another type, which only reading them would show.
std::optional<tensor::DType> field_type(const config::Config& config) {
    constexpr std::array kTypes{tensor::DType::f32, tensor::DType::f16, tensor::DType::bf16};
    if (!has_fields(config.data)) return std::nullopt;
    return kTypes[static_cast<std::size_t>(config.data.climate_precision)];
}

/// Returns the bytes of activations and forward working copies of the evaluation network.
double evaluation_bytes(const config::Config& config, int samples) {
    const graph::Graph described =
        models::make_inference_model(config, {.dtype = field_type(config)});
    const graph::Graph built = config.training.fusion ? graph::fuse(described) : described;
    ComputePrecision precision = compute_precision(config);
    precision.int8 = false;
    return models::evaluation_rows(config, samples) * peak_live_bytes(built, precision) +
           working_copy_bytes(built, precision) / 2;
}

/// Returns the bytes of the prefetched batches, the batch in use and the caches. A cache of
/// synthetic fields holds at most all samples. Other caches are assumed to be full, because the
/// sizes of photographs vary.
double input_bytes(const config::Config& config, const graph::Graph& graph, int rows,
                   const Quantity& training_samples) {
    const auto sample = static_cast<double>(graph_input_bytes(graph, {}));
    const bool has_cache = config.data.kind != config::DataKind::climate_hdf5;
    double cache = has_cache ? config.data.decoded_cache_mib * kMebibyte : 0;
    if (config.data.kind == config::DataKind::climate_synthetic && training_samples.value) {
        const double samples = *training_samples.value + config.data.synthetic_validation_samples;
        cache = std::min(cache, samples * sample);
    }
    return sample * rows * (config.data.prefetch_batches + 1) + cache +
           config.data.resident_mib * kMebibyte;
}

/// Returns the bytes of samples that the first shard sends to the others of its stage in a step.
double forwarded_bytes(const plan::Layout& layout, const ModelShards& partition, int samples) {
    const auto sample = static_cast<double>(graph_input_bytes(partition.model, {}));
    return (layout.shards - 1) * sample * layout.micro_batches * samples;
}

double normalized_channels(const graph::Graph& graph) {
    std::int64_t channels = 0;
    for (const graph::NormStatistics& statistics : graph.statistics()) {
        channels += statistics.channels;
    }
    return static_cast<double>(channels);
}

/// Returns the total bytes. It includes both training and evaluation if there are evaluations
/// between epochs, else the larger of the two.
double total_of(const PlanMemoryRecord& memory) {
    const double training = memory.working_copy_bytes + memory.activation_bytes;
    return memory.parameter_bytes + memory.gradient_bytes + memory.optimizer_bytes +
           memory.statistics_bytes + memory.input_bytes + memory.exchange_bytes +
           memory.program_bytes +
           (memory.evaluates_between ? training + memory.evaluation_bytes
                                     : std::max(training, memory.evaluation_bytes));
}

/// Returns the name of each stage's first node in the model, because shards rename nodes.
std::vector<std::string> first_node_names(const graph::Graph& model, int stages) {
    std::vector<std::string> names{model.nodes().front().name};
    for (const std::size_t first_node : graph::stage_cuts(model, stages)) {
        names.push_back(model.nodes()[first_node].name);
    }
    return names;
}

}  // namespace

ComputePrecision compute_precision(const config::Config& config) {
    using config::Precision;
    const Precision precision = config.training.precision;
    if (precision == Precision::automatic) {
        if (config.device.kind == config::DeviceKind::cuda) return {"mixed", 2, false};
        return {"fp32", 4, true};
    }
    const bool is_narrow = precision == Precision::bf16 || precision == Precision::fp16 ||
                           precision == Precision::mixed;
    return {config::value_text(config, "training.precision"), is_narrow ? 2 : 4, false,
            precision == Precision::int8};
}

std::int64_t value_bytes(const graph::Graph& graph, graph::ValueId value,
                         const ComputePrecision& precision) {
    const graph::Value& described = graph.value(value);
    const auto bytes = described.dtype ? static_cast<std::int64_t>(size_of(*described.dtype))
                                       : std::int64_t{precision.bytes};
    return described.shape.elements() * bytes;
}

ModelShards shard_model(const config::Config& config, const plan::Layout& layout) {
    const graph::Graph described = models::make_model(config, {.dtype = field_type(config)});
    ModelShards result{config.training.fusion ? graph::fuse(described) : described, {}, {}, {}};
    const int element_bytes = static_cast<int>(compute_precision(config).bytes);
    std::vector<graph::Stage> stages =
        graph::partition_stages(result.model, layout.stages, layout.shards);
    for (int stage = 0; stage < layout.stages; ++stage) {
        graph::ExchangedBytes& max_bytes = result.exchanged.emplace_back();
        for (int shard = 0; shard < layout.shards; ++shard) {
            graph::Stage& part = stages[stage * layout.shards + shard];
            const graph::ExchangedBytes bytes = graph::exchanged_bytes(part.graph, element_bytes);
            max_bytes.sent = std::max(max_bytes.sent, bytes.sent);
            max_bytes.largest = std::max(max_bytes.largest, bytes.largest);
            if (shard + 1 == layout.shards) result.stages.push_back(std::move(part));
        }
        result.in_flight.push_back(plan::micro_batches_in_flight(plan::pipeline_tasks(
            config.parallel.schedule, layout.stages, stage, layout.micro_batches)));
    }
    return result;
}

PlanMemoryRecord estimate_memory(const config::Config& config, const plan::Layout& layout,
                                 const ModelShards& partition, const std::vector<double>& exchange,
                                 const Quantity& training_samples) {
    const int samples = layout.micro_batch_size(config.training.batch_size);
    const ComputePrecision precision = compute_precision(config);
    const int states = config::optimizer_states(config.training.optimizer);
    const int gradient_copies = layout.micro_batches > 1 ? 2 : 1;
    PlanMemoryRecord largest;
    for (std::size_t stage = 0; stage < partition.stages.size(); ++stage) {
        const graph::Graph& graph = partition.stages[stage].graph;
        const double bytes = kFp32Bytes * static_cast<double>(graph.parameter_count());
        PlanMemoryRecord memory{.precision = precision.name,
                                .parameter_bytes = bytes,
                                .gradient_bytes = gradient_copies * bytes,
                                .optimizer_bytes = states * bytes,
                                .working_copy_bytes = working_copy_bytes(graph, precision),
                                .activation_bytes = samples * partition.in_flight[stage] *
                                                    kept_activation_bytes(graph, precision)};
        memory.exchange_bytes = exchange[stage];
        memory.program_bytes = config.device.kind == config::DeviceKind::cuda ? 0 : kProgramBytes;
        if (stage == 0) {
            memory.input_bytes = input_bytes(config, partition.model,
                                             samples * layout.micro_batches, training_samples);
        }
        memory.statistics_bytes = 2 * kFp32Bytes * normalized_channels(graph);
        memory.evaluation_bytes = evaluation_bytes(config, samples);
        memory.evaluates_between = config.run.evaluate_epochs > 0;
        if (layout.partitions() > 1) {
            // A rank that evaluates gathers the entire model, with a gradient for each parameter.
            const double model_bytes =
                2 * kFp32Bytes * static_cast<double>(partition.model.parameter_count());
            // It frees its own stage or shard only after it has gathered the model.
            const double shard_bytes = memory.gradient_bytes + memory.optimizer_bytes + bytes;
            memory.evaluation_bytes =
                memory.evaluates_between
                    ? memory.evaluation_bytes + model_bytes
                    : std::max(model_bytes, memory.evaluation_bytes + model_bytes - shard_bytes);
        }
        memory.total_bytes = total_of(memory);
        if (memory.total_bytes > largest.total_bytes) largest = memory;
    }
    return largest;
}

PlanParallelRecord estimate_parallel(const config::Config& config, const plan::Layout& layout,
                                     const ModelShards& partition) {
    const int samples = layout.micro_batch_size(config.training.batch_size);
    PlanParallelRecord parallel{
        .data_degree = layout.data_degree(),
        .pipeline_degree = layout.stages,
        .model_degree = layout.shards,
        .micro_batches = layout.micro_batches,
        .micro_batch_samples = samples,
        .schedule = config::value_text(config, "parallel.schedule"),
        .bubble_fraction = {plan::bubble_fraction(layout.stages, layout.micro_batches)},
        .stages = {}};
    const std::vector<std::string> first_names = first_node_names(partition.model, layout.stages);
    double max_flops = 0, received = 0;
    for (std::size_t index = 0; index < partition.stages.size(); ++index) {
        const graph::Stage& stage = partition.stages[index];
        const auto flops =
            static_cast<double>(graph::flops(stage.graph, metrics::kOfficialLedger).training());
        double sent = 0;
        for (const graph::ValueId output : stage.graph.outputs()) {
            sent += samples * static_cast<double>(
                                  value_bytes(stage.graph, output, compute_precision(config)));
        }
        parallel.stages.push_back({.first_node = first_names[index],
                                   .nodes = static_cast<int>(stage.nodes),
                                   .flops_per_sample = flops,
                                   .parameters = stage.graph.parameter_count(),
                                   .boundary_bytes = sent,
                                   .in_flight = partition.in_flight[index]});
        parallel.message_bytes_per_step =
            std::max(parallel.message_bytes_per_step, layout.micro_batches * (received + sent));
        const double forwarded = index == 0 ? forwarded_bytes(layout, partition, samples) : 0;
        parallel.shard_bytes_per_step =
            std::max(parallel.shard_bytes_per_step,
                     forwarded + layout.micro_batches * samples *
                                     static_cast<double>(partition.exchanged[index].sent));
        received = sent;
        max_flops = std::max(max_flops, flops);
    }
    if (layout.partitions() > 1) {
        parallel.largest_stage_share.value =
            max_flops /
            static_cast<double>(graph::flops(partition.model, metrics::kOfficialLedger).training());
    }
    return parallel;
}

std::vector<double> statistics_bytes(const plan::Layout& layout, const ModelShards& partition) {
    std::vector<double> bytes;
    for (const graph::Stage& stage : partition.stages) {
        // Two doubles per channel in the forward and two in the backward pass of each micro-batch.
        bytes.push_back(layout.micro_batches *
                        (4 * sizeof(double) * normalized_channels(stage.graph)));
    }
    return bytes;
}

std::vector<double> shard_buffer_bytes(const plan::Layout& layout, const ModelShards& partition,
                                       int samples) {
    std::vector<double> bytes;
    for (const graph::ExchangedBytes& exchanged : partition.exchanged) {
        const double forwarded = bytes.empty() ? forwarded_bytes(layout, partition, samples) : 0;
        bytes.push_back(std::max(samples * static_cast<double>(exchanged.largest), forwarded) +
                        (layout.shards > 1 ? forwarded / (layout.shards - 1) : 0));
    }
    return bytes;
}

}  // namespace hpcai::prediction
