// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include <hpcai/base/error.hpp>
#include <hpcai/graph/stages.hpp>

namespace hpcai::graph {
namespace {

// FLOPs of a core during the transfer of a byte: 181 GFLOPS / 1.08 GB/s, rounded. Two cores train
// 15.62 images/s of 23.2 GFLOPs in bf16 (docs/RESULTS.md). Between two ranks of a host, 28
// all-reduces of 94.1 MB took 2.45 s.
constexpr double kFlopsPerByte = 170;

/// Returns the last node that reads each value, [value]; 0 if there is none.
std::vector<std::size_t> last_readers(const Graph& graph) {
    std::vector<std::size_t> last(graph.values().size(), 0);
    for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
        for (const ValueId input : graph.nodes()[node].inputs) last[input] = node;
    }
    return last;
}

/// Returns the values that a node before `position` computes and a node at or after it reads.
std::vector<ValueId> crossing_values(const Graph& graph, std::size_t position) {
    const std::vector<std::size_t> last = last_readers(graph);
    std::vector<ValueId> values;
    for (std::size_t node = 0; node < position; ++node) {
        const ValueId output = graph.nodes()[node].output;
        if (last[output] >= position) values.push_back(output);
    }
    return values;
}

/// Forbids cuts between the first and the last of `nodes`.
void forbid_cuts_between(const std::vector<std::size_t>& nodes, std::vector<double>& cut_costs) {
    if (nodes.empty()) return;
    for (std::size_t position = nodes.front() + 1; position <= nodes.back(); ++position) {
        cut_costs[position] = std::numeric_limits<double>::infinity();
    }
}

/// Returns the nodes that use parameter or value `id`; `ids` is Node::parameters or Node::inputs.
std::vector<std::size_t> users(const Graph& graph, std::size_t id,
                               std::vector<std::int32_t> Node::*ids) {
    std::vector<std::size_t> found;
    for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
        const auto& used = graph.nodes()[node].*ids;
        if (std::ranges::count(used, static_cast<std::int32_t>(id)) > 0) found.push_back(node);
    }
    return found;
}

/// Copies a range of the model's nodes into a separate graph.
class StageMaker {
public:
    StageMaker(const Graph& model, std::size_t begin, std::size_t end)
        : model_(model), begin_(begin), end_(end) {}

    Stage make() {
        stage_.first_node = begin_;
        stage_.nodes = end_ - begin_;
        for (const ValueId value : crossing_values(model_, begin_)) {
            values_[value] =
                stage_.graph.add_received(model_.value(value), model_.needs_gradient(value));
        }
        for (std::size_t node = begin_; node < end_; ++node) add(model_.nodes()[node]);
        for (const ValueId value : crossing_values(model_, end_)) {
            stage_.graph.add_output(values_.at(value));
        }
        return std::move(stage_);
    }

private:
    void add(Node node) {
        for (ValueId& input : node.inputs) {
            const Value& value = model_.value(input);
            if (!values_.contains(input)) {
                values_[input] = stage_.graph.add_input(value.name, value.shape, *value.dtype);
            }
            input = values_.at(input);
        }
        for (ParameterId& parameter : node.parameters) parameter = add_parameter(parameter);
        node.statistics = add_statistics(node.statistics);
        node.inner_statistics = add_statistics(node.inner_statistics);
        const ValueId old_output = node.output;
        values_[old_output] = stage_.graph.add_node(std::move(node));
    }

    ParameterId add_parameter(ParameterId id) {
        if (!parameters_.contains(id)) {
            parameters_[id] = stage_.graph.add_parameter(model_.parameters()[id]);
            stage_.parameters.push_back(id);
        }
        return parameters_.at(id);
    }

    std::int32_t add_statistics(std::int32_t index) {
        if (index < 0) return index;
        stage_.statistics.push_back(index);
        return stage_.graph.add_statistics(model_.statistics()[index]);
    }

    const Graph& model_;
    std::size_t begin_, end_;
    Stage stage_;
    std::map<ValueId, ValueId> values_;              // model to stage
    std::map<ParameterId, ParameterId> parameters_;  // model to stage
};

constexpr double kInfeasible = std::numeric_limits<double>::infinity();

/// Finds the best cuts by dynamic programming over the ends of the stages.
class Balancer {
public:
    Balancer(const StageCosts& costs, int stages)
        : costs_(costs), nodes_(costs.nodes.size()), stages_(static_cast<std::size_t>(stages)) {
        const auto sums = [&](const auto& values, auto& prefix) {
            prefix.resize(nodes_ + 1);
            for (std::size_t i = 0; i < nodes_; ++i) prefix[i + 1] = prefix[i] + values[i];
        };
        sums(costs.nodes, cost_before_);
        sums(costs.trained, trained_before_);
    }

    std::vector<std::size_t> run() {
        const double limit = minimize([&](double before, std::size_t begin, std::size_t end) {
            return std::max(before, cost(begin, end));
        });
        if (!std::isfinite(limit)) return {};
        minimize([&](double before, std::size_t begin, std::size_t end) {
            return cost(begin, end) > limit ? kInfeasible : before + cut_cost(begin);
        });
        std::vector<std::size_t> cuts;
        for (std::size_t stage = stages_, end = nodes_; stage-- > 1;) {
            end = stage_begins_[stage][end];
            cuts.insert(cuts.begin(), end);
        }
        return cuts;
    }

private:
    double cut_cost(std::size_t position) const {
        return position == 0 || position == nodes_ ? 0 : costs_.cuts[position];
    }
    /// The cost of a stage with nodes [begin, end).
    double cost(std::size_t begin, std::size_t end) const {
        if (trained_before_[end] == trained_before_[begin]) return kInfeasible;
        return cost_before_[end] - cost_before_[begin] + cut_cost(begin) + cut_cost(end);
    }

    /// Returns the smallest total, and sets stage_begins_ to match. `extend(total, begin, end)` is
    /// the total after a stage with nodes [begin, end), where `total` is that of the stages before.
    double minimize(const auto& extend) {
        std::vector<double> best(nodes_ + 1, kInfeasible);  // [end] for the stages so far
        best[0] = 0;
        stage_begins_.clear();
        for (std::size_t stage = 0; stage < stages_; ++stage) {
            std::vector<double> next(nodes_ + 1, kInfeasible);
            stage_begins_.emplace_back(nodes_ + 1, 0);
            for (std::size_t end = 1; end <= nodes_; ++end) {
                for (std::size_t begin = 0; begin < end; ++begin) {
                    const double total = extend(best[begin], begin, end);
                    if (total >= next[end]) continue;
                    next[end] = total;
                    stage_begins_.back()[end] = begin;
                }
            }
            best = std::move(next);
        }
        return best[nodes_];
    }

    const StageCosts& costs_;
    std::size_t nodes_, stages_;
    std::vector<double> cost_before_;
    std::vector<int> trained_before_;
    std::vector<std::vector<std::size_t>> stage_begins_;  // [stage][end] begin of that stage
};

}  // namespace

std::int64_t crossing_bytes(const Graph& graph, std::size_t position, int element_bytes) {
    std::int64_t bytes = 0;
    for (const ValueId id : crossing_values(graph, position)) {
        const Value& value = graph.value(id);
        const auto size = value.dtype ? static_cast<std::int64_t>(size_of(*value.dtype))
                                      : std::int64_t{element_bytes};
        bytes += value.shape.elements() * size;
    }
    return bytes;
}

StageCosts stage_costs(const Graph& graph) {
    StageCosts costs;
    for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
        const Node& described = graph.nodes()[node];
        costs.nodes.push_back(
            static_cast<double>(flops(graph, described, ops::Ledger::table3).training()));
        // Gradients cross a cut as well as values, hence the factor 2.
        costs.cuts.push_back(2 * kFlopsPerByte *
                             static_cast<double>(crossing_bytes(graph, node, sizeof(float))));
        costs.trained.push_back(static_cast<int>(std::ranges::count_if(
            described.parameters,
            [&](ParameterId parameter) { return graph.parameters()[parameter].is_trained; })));
    }
    for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
        forbid_cuts_between(users(graph, id, &Node::parameters), costs.cuts);
    }
    for (std::size_t id = 0; id < graph.values().size(); ++id) {
        if (graph.values()[id].producer != kNoNode) continue;
        forbid_cuts_between(users(graph, id, &Node::inputs), costs.cuts);
    }
    return costs;
}

std::vector<std::size_t> stage_cuts(const Graph& graph, int stages) {
    if (stages == 1) return {};
    const StageCosts costs = stage_costs(graph);
    std::vector<std::size_t> cuts = balance(costs, stages);
    if (!cuts.empty()) return cuts;
    int max_stages = 1;
    while (!balance(costs, max_stages + 1).empty()) ++max_stages;
    throw Error(ExitCode::usage,
                fmt::format("parallel.pipeline_degree: expected 1 to {}, the largest number of "
                            "stages of this model, got {}",
                            max_stages, stages));
}

std::vector<Stage> partition_stages(const Graph& graph, int stages) {
    return partition_at(graph, stage_cuts(graph, stages));
}

std::vector<Stage> partition_at(const Graph& graph, std::vector<std::size_t> cuts) {
    cuts.push_back(graph.nodes().size());
    std::vector<Stage> stages;
    std::size_t begin = 0;
    for (const std::size_t end : cuts) {
        stages.push_back(StageMaker(graph, begin, end).make());
        begin = end;
    }
    return stages;
}

std::vector<std::size_t> balance(const StageCosts& costs, int stages) {
    if (static_cast<std::size_t>(stages) > costs.nodes.size()) return {};
    return Balancer(costs, stages).run();
}

}  // namespace hpcai::graph
