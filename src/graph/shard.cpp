// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/graph/shard.hpp>

namespace hpcai::graph {
namespace {

std::int64_t channels_of(const tensor::Shape& shape) {
    return shape[shape.rank() - 1];
}

/// Checks that each layer has at least one channel per shard.
void check_shards(const Graph& graph, int shards) {
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    std::string name;
    for (const Node& node : graph.nodes()) {
        if (!ops::is_one_of<ops::Convolution, ops::Linear>(node.operation)) continue;
        const std::int64_t channels = channels_of(graph.value(node.output).shape);
        if (channels >= fewest) continue;
        fewest = channels;
        name = node.name;
    }
    require(shards >= 1 && shards <= fewest, ExitCode::usage,
            "parallel.model_degree: expected 1 to {}, the number of channels of {}, got {}", fewest,
            name, shards);
}

/// Builds the graph of one shard, node by node.
class ShardBuilder {
public:
    ShardBuilder(const Graph& model, int shards, int number)
        : model_(model), shards_(shards), number_(number), own_(model.values().size(), -1) {
        gathered_ = own_;
        is_split_.resize(own_.size());
        classify_nodes();
        add_parameters();
    }

    Shard run() {
        for (const Node& node : model_.nodes()) {
            const Kind kind = kinds_[shard_.first_nodes.size()];
            shard_.first_nodes.push_back(shard_.graph.nodes().size());
            std::visit([&](const auto& operation) { add(node, kind, operation); }, node.operation);
        }
        return std::move(shard_);
    }

private:
    /// What a shard computes of a node: all of it, the shard's channels of a channelwise operation,
    /// the outputs of the shard's filters, or partial sums of all outputs over its input channels.
    enum class Kind { replicated, own_channels, own_filters, own_inputs };

    ops::ChannelRange own_range(std::int64_t channels) const {
        return ops::channel_range(channels, shards_, number_);
    }
    tensor::Shape own_shape(tensor::Shape shape) const {
        std::int64_t& channels = shape[shape.rank() - 1];
        channels = own_range(channels).count;
        return shape;
    }

    /// Determines how the shards compute each node. The outputs of nodes that are not replicated
    /// are split.
    void classify_nodes() {
        ensure(model_.outputs().empty(), "a pipeline stage cannot be divided into shards");
        for (const Node& node : model_.nodes()) {
            const Kind kind = kind_of(node);
            kinds_.push_back(kind);
            is_split_[node.output] = kind != Kind::replicated;
        }
    }

    Kind kind_of(const Node& node) const {
        if (std::holds_alternative<ops::Linear>(node.operation)) return Kind::own_filters;
        if (std::holds_alternative<ops::Convolution>(node.operation)) {
            return prefers_partial_sums(node.inputs[0]) ? Kind::own_inputs : Kind::own_filters;
        }
        if (ops::is_loss(node.operation)) return Kind::replicated;
        const auto split_inputs =
            std::ranges::count_if(node.inputs, [&](ValueId input) { return is_split_[input]; });
        if (split_inputs == 0) {
            ensure(node.parameters.empty() && !model_.needs_gradient(node.output),
                   "{} cannot be divided into shards", node.name);
            return Kind::replicated;
        }
        ensure(split_inputs == std::ssize(node.inputs), "{} cannot be divided into shards",
               node.name);
        return Kind::own_channels;
    }

    /// Returns whether convolutions that read `value` compute partial sums from the shard's
    /// channels: `value` is split, no linear layer reads it, and it has more elements than the
    /// outputs of these convolutions together.
    bool prefers_partial_sums(ValueId value) const {
        if (!is_split_[value]) return false;
        std::int64_t outputs = 0;
        for (const NodeId reader : model_.consumers(value)) {
            const Node& node = model_.nodes()[reader];
            if (std::holds_alternative<ops::Linear>(node.operation)) return false;
            if (!std::holds_alternative<ops::Convolution>(node.operation)) continue;
            outputs += model_.value(node.output).shape.elements();
        }
        return outputs < model_.value(value).shape.elements();
    }

    void add_parameters() {
        std::vector<Parameter> parameters = model_.parameters();
        std::vector<NormStatistics> statistics = model_.statistics();
        std::set<ParameterId> split;
        for (std::size_t index = 0; index < kinds_.size(); ++index) {
            if (kinds_[index] == Kind::replicated) continue;
            const Node& node = model_.nodes()[index];
            for (const ParameterId id : node.parameters) {
                Parameter& parameter = parameters[id];
                ensure(split.insert(id).second, "several layers share {}; they cannot be divided",
                       parameter.name);
                // The axis of input channels in filters (K, R, S, C), or that of the outputs.
                const int axis = kinds_[index] == Kind::own_inputs ? 3 : 0;
                std::int64_t& channels = parameter.shape[axis];
                const auto [first, count] = own_range(channels);
                parameter.slice = {axis, first, channels};
                channels = count;
            }
            if (node.statistics < 0) continue;
            NormStatistics& running = statistics[node.statistics];
            const auto [first, count] = own_range(running.channels);
            running = {running.name, count, first};
        }
        for (Parameter& parameter : parameters) shard_.graph.add_parameter(std::move(parameter));
        for (NormStatistics& running : statistics) shard_.graph.add_statistics(std::move(running));
    }

    /// Returns the shard's value for a model value; a split value has only the shard's channels.
    ValueId own_value(ValueId value) {
        ValueId& id = own_[value];
        if (id < 0) {
            const Value& input = model_.value(value);
            id = shard_.graph.add_input(input.name, input.shape, *input.dtype);
        }
        return id;
    }

    /// Returns the shard's value for a model value with all channels; gathers a split value.
    ValueId gathered_value(ValueId value, bool sums_gradients) {
        if (!is_split_[value]) return own_value(value);
        ValueId& gathered = gathered_[value];
        if (gathered >= 0) {
            const Node& node = shard_.graph.nodes()[shard_.graph.value(gathered).producer];
            ensure(std::get<ops::AllGather>(node.operation).sums_gradients == sums_gradients,
                   "both a loss and a layer read {}, which is not supported", node.name);
        } else {
            const Value& full = model_.value(value);
            gathered = shard_.graph.add_node(
                full.name + ".gathered",
                ops::AllGather{shard_.graph.value(own_value(value)).shape, channels_of(full.shape),
                               shards_, number_, sums_gradients, full.dtype},
                {own_value(value)});
        }
        return gathered;
    }

    void append(const Node& node, ops::Operation operation, std::vector<ValueId> inputs) {
        Node copy = node;
        copy.operation = std::move(operation);
        copy.inputs = std::move(inputs);
        own_[node.output] = shard_.graph.add_node(std::move(copy));
    }

    void add(const Node& node, Kind kind, ops::Convolution operation) {
        const ValueId input = node.inputs[0];
        if (kind == Kind::own_filters) {
            operation.filters = own_range(operation.filters).count;
            return append(node, operation, {gathered_value(input, true)});
        }
        operation.input = own_shape(operation.input);
        Node partial = node;
        partial.name += ".partial";
        append(partial, operation, {own_value(input)});
        const ValueId sum = own_value(node.output);
        Node scattered{.name = node.name, .output = node.output};
        append(scattered, ops::ReduceScatter{model_.value(node.output).shape, shards_, number_},
               {sum});
    }

    void add(const Node& node, Kind, ops::Linear operation) {
        operation.features = own_range(operation.features).count;
        append(node, operation, {gathered_value(node.inputs[0], true)});
    }

    void add(const Node& node, Kind, const ops::SoftmaxCrossEntropy& operation) {
        append(node, operation, {gathered_value(node.inputs[0], false), own_value(node.inputs[1])});
    }

    template <ops::OneOf<ops::BatchNorm, ops::Bias, ops::Relu, ops::Add, ops::MaxPool,
                         ops::GlobalAveragePool>
                  Channelwise>
    void add(const Node& node, Kind kind, const Channelwise& op) {
        Channelwise operation = op;
        if (kind == Kind::own_channels) operation.input = own_shape(operation.input);
        std::vector<ValueId> inputs;
        for (const ValueId input : node.inputs) inputs.push_back(own_value(input));
        append(node, operation, std::move(inputs));
    }
    void add(const Node& node, Kind kind, const ops::InputNormalize& op) {
        ensure(kind == Kind::replicated, "{} cannot be divided into shards", node.name);
        append(node, op, {own_value(node.inputs[0])});
    }
    void add(const Node& node, Kind, const auto&) {
        throw Error(ExitCode::internal, fmt::format("{} cannot be divided into shards", node.name));
    }

    const Graph& model_;
    int shards_, number_;
    std::vector<Kind> kinds_;        // [node of the model]
    std::vector<bool> is_split_;     // [value of the model]
    std::vector<ValueId> own_;       // [value of the model] value of the shard; -1: not added yet
    std::vector<ValueId> gathered_;  // like own_, with all channels
    Shard shard_;
};

}  // namespace

Shard shard(const Graph& graph, int shards, int number) {
    check_shards(graph, shards);
    return ShardBuilder(graph, shards, number).run();
}

std::vector<Stage> partition_stages(const Graph& graph, int stages, int shards) {
    if (shards == 1) return partition_stages(graph, stages);
    const std::vector<std::size_t> cuts = stage_cuts(graph, stages);
    std::vector<Stage> result(static_cast<std::size_t>(stages) * static_cast<std::size_t>(shards));
    for (int number = 0; number < shards; ++number) {
        const Shard built = shard(graph, shards, number);
        std::vector<std::size_t> shard_cuts;
        for (const std::size_t cut : cuts) shard_cuts.push_back(built.first_nodes[cut]);
        std::size_t index = static_cast<std::size_t>(number);
        for (Stage& stage : partition_at(built.graph, shard_cuts)) {
            result[index] = std::move(stage);
            index += static_cast<std::size_t>(shards);
        }
    }
    return result;
}

ExchangedBytes exchanged_bytes(const Graph& graph, int element_bytes) {
    ExchangedBytes total;
    // In a gather, a shard sends its channels to every other shard and receives theirs. In a
    // reduce-scatter, it sends as many bytes as it receives in a gather, and vice versa.
    const auto add = [&](bool is_gather, const tensor::Shape& full, const tensor::Shape& own,
                         int shards, std::int64_t size) {
        const std::int64_t own_copies = (shards - 1) * own.elements() * size;
        const std::int64_t others_channels = (full.elements() - own.elements()) * size;
        total.sent += is_gather ? own_copies : others_channels;
        total.largest = std::max(total.largest, own_copies + others_channels);
    };
    for (const Node& node : graph.nodes()) {
        const tensor::Shape& output = graph.value(node.output).shape;
        const bool needs_input_gradient = !graph.needs_no_input_gradient(node);
        if (const auto* op = std::get_if<ops::AllGather>(&node.operation)) {
            const auto size =
                op->dtype ? static_cast<std::int64_t>(size_of(*op->dtype)) : element_bytes;
            add(true, output, op->input, op->shards, size);
            const bool sums_gradients = needs_input_gradient && op->sums_gradients;
            if (sums_gradients) add(false, output, op->input, op->shards, element_bytes);
        }
        if (const auto* op = std::get_if<ops::ReduceScatter>(&node.operation)) {
            add(false, op->input, output, op->shards, element_bytes);
            if (needs_input_gradient) add(true, op->input, output, op->shards, element_bytes);
        }
    }
    return total;
}

}  // namespace hpcai::graph
