// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <hpcai/base/error.hpp>
#include <hpcai/graph/shard.hpp>

namespace hpcai::graph {
namespace {

std::int64_t channels_of(const tensor::Shape& shape) {
    return shape[shape.rank() - 1];
}

/// Checks that each layer has at least one channel for each shard.
void check_parts(const Graph& graph, int parts) {
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max();
    std::string name;
    for (const Node& node : graph.nodes()) {
        const bool is_layer = std::holds_alternative<ops::Convolution>(node.operation) ||
                              std::holds_alternative<ops::Linear>(node.operation);
        if (!is_layer) continue;
        const std::int64_t channels = channels_of(graph.value(node.output).shape);
        if (channels >= fewest) continue;
        fewest = channels;
        name = node.name;
    }
    require(parts >= 1 && parts <= fewest, ExitCode::usage,
            "parallel.model_degree: expected 1 to {}, the number of channels of {}, got {}", fewest,
            name, parts);
}

/// Builds the graph of one shard, node by node.
class ShardBuilder {
public:
    ShardBuilder(const Graph& model, int parts, int part)
        : model_(model), parts_(parts), part_(part), own_(model.values().size(), -1) {
        gathered_ = own_;
        is_split_.resize(own_.size());
        choose();
        add_parameters();
    }

    Shard run() {
        for (const Node& node : model_.nodes()) {
            const Kind kind = kinds_[made_.first_nodes.size()];
            made_.first_nodes.push_back(made_.graph.nodes().size());
            std::visit([&](const auto& operation) { add(node, kind, operation); }, node.operation);
        }
        return std::move(made_);
    }

private:
    enum class Kind { replicated, own_channels, own_filters, own_inputs };

    ops::ChannelRange own_range(std::int64_t channels) const {
        return ops::channel_range(channels, parts_, part_);
    }
    tensor::Shape own_shape(tensor::Shape shape) const {
        std::int64_t& channels = shape[shape.rank() - 1];
        channels = own_range(channels).count;
        return shape;
    }
    bool is_split(ValueId value) const { return is_split_[value]; }
    const tensor::Shape& shape_of(ValueId value) const { return model_.value(value).shape; }

    /// Determines how each node is computed, and thus which values are split.
    void choose() {
        ensure(model_.outputs().empty(), "a stage cannot be divided into shards");
        for (const Node& node : model_.nodes()) {
            const Kind kind = kind_of(node);
            kinds_.push_back(kind);
            is_split_[node.output] = kind != Kind::replicated;
        }
    }

    Kind kind_of(const Node& node) const {
        if (std::holds_alternative<ops::Linear>(node.operation)) return Kind::own_filters;
        if (std::holds_alternative<ops::Convolution>(node.operation)) {
            return reads_own_channels(node.inputs[0]) ? Kind::own_inputs : Kind::own_filters;
        }
        if (ops::is_loss(node.operation)) return Kind::replicated;
        const auto split_inputs =
            std::ranges::count_if(node.inputs, [&](ValueId input) { return is_split(input); });
        if (split_inputs == 0) {
            ensure(node.parameters.empty() && !model_.needs_gradient(node.output),
                   "{} cannot be divided into shards", node.name);
            return Kind::replicated;
        }
        ensure(split_inputs == std::ssize(node.inputs), "{} cannot be divided into shards",
               node.name);
        return Kind::own_channels;
    }

    /// Returns whether `value` is split, no linear layer reads it, and its convolutions output
    /// fewer elements than it has.
    bool reads_own_channels(ValueId value) const {
        if (!is_split(value)) return false;
        std::int64_t outputs = 0;
        for (const NodeId reader : model_.consumers(value)) {
            const Node& node = model_.nodes()[reader];
            if (std::holds_alternative<ops::Linear>(node.operation)) return false;
            if (!std::holds_alternative<ops::Convolution>(node.operation)) continue;
            outputs += shape_of(node.output).elements();
        }
        return outputs < shape_of(value).elements();
    }

    void add_parameters() {
        std::vector<Parameter> parameters = model_.parameters();
        std::vector<NormStatistics> statistics = model_.statistics();
        std::set<ParameterId> cut;
        for (std::size_t index = 0; index < kinds_.size(); ++index) {
            if (kinds_[index] == Kind::replicated) continue;
            const Node& node = model_.nodes()[index];
            for (const ParameterId id : node.parameters) {
                Parameter& parameter = parameters[id];
                ensure(cut.insert(id).second, "{} is shared by divided layers", parameter.name);
                slice(kinds_[index] == Kind::own_inputs ? 3 : 0, parameter);
            }
            if (node.statistics < 0) continue;
            NormStatistics& running = statistics[node.statistics];
            const auto [first, count] = own_range(running.channels);
            running = {running.name, count, first};
        }
        for (Parameter& parameter : parameters) made_.graph.add_parameter(std::move(parameter));
        for (NormStatistics& running : statistics) made_.graph.add_statistics(std::move(running));
    }

    void slice(int axis, Parameter& parameter) const {
        std::int64_t& channels = parameter.shape[axis];
        const auto [first, count] = own_range(channels);
        parameter.slice = {axis, first, channels};
        channels = count;
    }

    /// Returns the shard's counterpart of a model value, with its own channels if that is split.
    ValueId own(ValueId value) {
        ValueId& mine = own_[value];
        if (mine < 0) {
            const Value& input = model_.value(value);
            mine = made_.graph.add_input(input.name, input.shape, *input.dtype);
        }
        return mine;
    }

    /// Returns the counterpart of a model value with all channels, gathered if the value is split.
    ValueId whole(ValueId value, bool sums_gradients) {
        if (!is_split(value)) return own(value);
        ValueId& gathered = gathered_[value];
        if (gathered >= 0) {
            const Node& node = made_.graph.nodes()[made_.graph.value(gathered).producer];
            ensure(std::get<ops::AllGather>(node.operation).sums_gradients == sums_gradients,
                   "both a loss and a layer read {}", node.name);
        } else {
            const Value& described = model_.value(value);
            gathered = made_.graph.add_node(
                described.name + ".gathered",
                ops::AllGather{made_.graph.value(own(value)).shape, channels_of(described.shape),
                               parts_, part_, sums_gradients, described.dtype},
                {own(value)});
        }
        return gathered;
    }

    void make(const Node& node, ops::Operation operation, std::vector<ValueId> inputs) {
        Node copy = node;
        copy.operation = std::move(operation);
        copy.inputs = std::move(inputs);
        own_[node.output] = made_.graph.add_node(std::move(copy));
    }

    void add(const Node& node, Kind kind, ops::Convolution operation) {
        const ValueId input = node.inputs[0];
        if (kind == Kind::own_filters) {
            operation.filters = own_range(operation.filters).count;
            return make(node, operation, {whole(input, true)});
        }
        operation.input = own_shape(operation.input);
        Node partial = node;
        partial.name += ".partial";
        make(partial, operation, {own(input)});
        const ValueId sum = own(node.output);
        Node scattered{.name = node.name, .output = node.output};
        make(scattered, ops::ReduceScatter{shape_of(node.output), parts_, part_}, {sum});
    }

    void add(const Node& node, Kind, ops::Linear operation) {
        operation.features = own_range(operation.features).count;
        make(node, operation, {whole(node.inputs[0], true)});
    }

    void add(const Node& node, Kind, const ops::SoftmaxCrossEntropy& operation) {
        make(node, operation, {whole(node.inputs[0], false), own(node.inputs[1])});
    }

    void add_channelwise(const Node& node, Kind kind, auto operation) {
        if (kind == Kind::own_channels) operation.input = own_shape(operation.input);
        std::vector<ValueId> inputs;
        for (const ValueId input : node.inputs) inputs.push_back(own(input));
        make(node, operation, std::move(inputs));
    }
    void add(const Node& node, Kind kind, const ops::BatchNorm& op) {
        add_channelwise(node, kind, op);
    }
    void add(const Node& node, Kind kind, const ops::Bias& op) { add_channelwise(node, kind, op); }
    void add(const Node& node, Kind kind, const ops::Relu& op) { add_channelwise(node, kind, op); }
    void add(const Node& node, Kind kind, const ops::Add& op) { add_channelwise(node, kind, op); }
    void add(const Node& node, Kind kind, const ops::MaxPool& op) {
        add_channelwise(node, kind, op);
    }
    void add(const Node& node, Kind kind, const ops::GlobalAveragePool& op) {
        add_channelwise(node, kind, op);
    }
    void add(const Node& node, Kind kind, const ops::InputNormalize& op) {
        ensure(kind == Kind::replicated, "{} cannot be divided into shards", node.name);
        add_channelwise(node, kind, op);
    }
    template <typename Other>
    void add(const Node& node, Kind, const Other&) {
        throw Error(ExitCode::internal, fmt::format("{} cannot be divided into shards", node.name));
    }

    const Graph& model_;
    int parts_, part_;
    std::vector<Kind> kinds_;        // per node of the model
    std::vector<bool> is_split_;     // per value of the model
    std::vector<ValueId> own_;       // per value of the model, in the shard's graph; -1: not yet
    std::vector<ValueId> gathered_;  // likewise, with all channels
    Shard made_;
};

/// The traffic of one operation: a shard sends its own channels to every other shard, and other
/// channels to their owners.
struct ShardTraffic {
    std::int64_t element_bytes;
    bool needs_input_gradient;

    /// Bytes that this shard sends when channels are gathered, and when sums of channels are
    /// scattered. It receives as many bytes in a gather as it sends in a scatter, and vice versa.
    struct Bytes {
        std::int64_t gathered = 0;
        std::int64_t scattered = 0;
        std::int64_t both() const { return gathered + scattered; }
    };
    static Bytes bytes_of(const tensor::Shape& whole, const tensor::Shape& mine, int parts,
                          std::int64_t element_bytes) {
        return {(parts - 1) * mine.elements() * element_bytes,
                (whole.elements() - mine.elements()) * element_bytes};
    }
    ExchangedBytes operator()(const ops::AllGather& op) const {
        const tensor::Shape whole = output_shape(op);
        const Bytes values =
            bytes_of(whole, op.input, op.parts,
                     op.dtype ? static_cast<std::int64_t>(size_of(*op.dtype)) : element_bytes);
        if (!needs_input_gradient || !op.sums_gradients) return {values.gathered, values.both()};
        const Bytes gradients = bytes_of(whole, op.input, op.parts, element_bytes);
        return {values.gathered + gradients.scattered, std::max(values.both(), gradients.both())};
    }
    ExchangedBytes operator()(const ops::ReduceScatter& op) const {
        const Bytes bytes = bytes_of(op.input, output_shape(op), op.parts, element_bytes);
        return {bytes.scattered + (needs_input_gradient ? bytes.gathered : 0), bytes.both()};
    }
    template <typename Other>
    ExchangedBytes operator()(const Other&) const {
        return {};
    }
};

}  // namespace

Shard shard(const Graph& graph, int parts, int part) {
    check_parts(graph, parts);
    return ShardBuilder(graph, parts, part).run();
}

std::vector<Stage> partition_stages(const Graph& graph, int stages, int parts) {
    if (parts == 1) return partition_stages(graph, stages);
    const std::vector<std::size_t> ends = stage_cuts(graph, stages);
    std::vector<Stage> made(static_cast<std::size_t>(stages) * static_cast<std::size_t>(parts));
    for (int part = 0; part < parts; ++part) {
        const Shard mine = shard(graph, parts, part);
        std::vector<std::size_t> own_ends;
        for (const std::size_t end : ends) own_ends.push_back(mine.first_nodes[end]);
        std::size_t place = static_cast<std::size_t>(part);
        for (Stage& stage : partition_at(mine.graph, own_ends)) {
            made[place] = std::move(stage);
            place += static_cast<std::size_t>(parts);
        }
    }
    return made;
}

ExchangedBytes exchanged_bytes(const Graph& graph, int element_bytes) {
    ExchangedBytes all;
    for (const Node& node : graph.nodes()) {
        const bool needs_input_gradient = !graph.is_first_layer(node);
        const ExchangedBytes one =
            std::visit(ShardTraffic{element_bytes, needs_input_gradient}, node.operation);
        all.sent += one.sent;
        all.largest = std::max(all.largest, one.largest);
    }
    return all;
}

}  // namespace hpcai::graph
