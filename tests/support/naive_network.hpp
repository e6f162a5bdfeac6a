// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <hpcai/graph/graph.hpp>
#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/reference/naive_random.hpp>

/// Runs a graph forward and backward by the naive operations, one after the other. Values that a
/// device stores in its compute type are also rounded to `stored` here; all others are double.
namespace hpcai::naive {

struct NetworkResult {
    std::vector<double> losses;         // (N)
    std::vector<double> probabilities;  // (N, classes)
    std::vector<Tensor> gradients;      // one per parameter
};

class Network {
public:
    /// Computes the node with this number.
    using Solve = std::function<Solution(const Problem&, std::size_t node)>;

    explicit Network(const graph::Graph& graph, tensor::DType stored = tensor::DType::f32)
        : Network(graph, [](const Problem& problem, std::size_t) { return solve(problem); }) {
        stored_ = stored;
    }
    Network(const graph::Graph& graph, Solve solve_node)
        : graph_(graph), solve_(std::move(solve_node)) {
        problems_.resize(graph.nodes().size());
    }

    /// Runs one training step without update: batch statistics, gradients of the sum of the rows'
    /// losses times `loss_scale`.
    NetworkResult run(const std::map<std::string, Tensor>& inputs,
                      const std::vector<Tensor>& parameters, double loss_scale) {
        NetworkResult result = forward(inputs, parameters, loss_scale);
        result.gradients = backward(parameters);
        return result;
    }

    /// Returns the sum of the rows' losses with batch statistics.
    double loss(const std::map<std::string, Tensor>& inputs,
                const std::vector<Tensor>& parameters) {
        double total = 0;
        for (const double row : forward(inputs, parameters, 1).losses) total += row;
        return total;
    }

private:
    static std::size_t index(std::int32_t id) { return static_cast<std::size_t>(id); }

    static bool is_fp32(const graph::Node& node) {
        return std::holds_alternative<ops::Linear>(node.operation) ||
               outputs_softmax(node.operation);
    }
    void round(Tensor& tensor) const {
        if (stored_ == tensor::DType::f32) return;
        for (double& value : tensor.values) value = round_to(stored_, value);
    }

    NetworkResult forward(const std::map<std::string, Tensor>& inputs,
                          const std::vector<Tensor>& parameters, double loss_scale) {
        std::vector<Tensor> values(graph_.values().size());
        for (const auto& [name, tensor] : inputs) values[index(graph_.find(name))] = tensor;
        NetworkResult result;
        for (std::size_t i = 0; i < problems_.size(); ++i) {
            const graph::Node& node = graph_.nodes()[i];
            problems_[i] = problem_of(node, values, parameters);
            problems_[i].loss_scale = loss_scale;
            Solution solution = solve_(problems_[i], i);
            if (!is_fp32(node)) round(solution.output);
            values[index(node.output)] = std::move(solution.output);
            if (i + 1 == problems_.size()) result.losses = solution.losses.values;
        }
        result.probabilities = values.back().values;
        return result;
    }

    Problem problem_of(const graph::Node& node, const std::vector<Tensor>& values,
                       const std::vector<Tensor>& parameters) const {
        Problem problem{.operation = node.operation};
        for (const auto id : node.inputs) problem.inputs.push_back(values[index(id)]);
        for (const auto id : node.parameters) problem.parameters.push_back(parameters[index(id)]);
        if (!problem.parameters.empty()) {
            if (problem.parameters[0].shape.rank() > 1) round(problem.parameters[0]);
            problem.running_mean = problem.running_variance = Tensor(problem.parameters[0].shape);
        }
        return problem;
    }

    std::vector<Tensor> backward(const std::vector<Tensor>& parameters) {
        std::vector<Tensor> parameter_gradients(parameters.size());
        std::vector<std::vector<Tensor>> gradients(graph_.values().size());
        for (std::size_t i = problems_.size(); i-- > 0;) {
            const graph::Node& node = graph_.nodes()[i];
            problems_[i].output_gradients = std::move(gradients[index(node.output)]);
            Solution solution = solve_(problems_[i], i);
            for (std::size_t input = 0; input < solution.input_gradients.size(); ++input) {
                round(solution.input_gradients[input]);
                gradients[index(node.inputs[input])].push_back(solution.input_gradients[input]);
            }
            for (std::size_t p = 0; p < node.parameters.size(); ++p) {
                parameter_gradients[index(node.parameters[p])] = solution.parameter_gradients[p];
            }
        }
        return parameter_gradients;
    }

    const graph::Graph& graph_;
    tensor::DType stored_ = tensor::DType::f32;
    Solve solve_;
    std::vector<Problem> problems_;
};

}  // namespace hpcai::naive
