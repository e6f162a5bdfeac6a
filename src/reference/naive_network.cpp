// SPDX-License-Identifier: Apache-2.0
#include <numeric>
#include <utility>

#include <hpcai/reference/naive_network.hpp>
#include <hpcai/reference/naive_random.hpp>

namespace hpcai::naive {
namespace {

std::size_t index(std::int32_t id) {
    return static_cast<std::size_t>(id);
}

bool is_fp32(const graph::Node& node) {
    return std::holds_alternative<ops::Linear>(node.operation) || outputs_softmax(node.operation);
}

}  // namespace

Network::Network(const graph::Graph& graph, tensor::DType stored, Solve solve_node)
    : graph_(graph),
      stored_(stored),
      solve_(std::move(solve_node)),
      problems_(graph.nodes().size()) {}

NetworkResult Network::run(const std::map<std::string, Tensor>& inputs,
                           const std::vector<Tensor>& parameters, double loss_scale) {
    NetworkResult result = forward(inputs, parameters, loss_scale);
    result.gradients = backward(parameters);
    return result;
}

double Network::loss(const std::map<std::string, Tensor>& inputs,
                     const std::vector<Tensor>& parameters) {
    const std::vector<double> losses = forward(inputs, parameters, 1).losses;
    return std::accumulate(losses.begin(), losses.end(), 0.0);
}

void Network::round(Tensor& tensor) const {
    if (stored_ == tensor::DType::f32) return;
    for (double& value : tensor.values) value = round_to(stored_, value);
}

NetworkResult Network::forward(const std::map<std::string, Tensor>& inputs,
                               const std::vector<Tensor>& parameters, double loss_scale) {
    std::vector<Tensor> values(graph_.values().size());
    std::vector<int> readers(values.size(), 0);  // that have not run
    for (const graph::Node& node : graph_.nodes()) {
        for (const auto id : node.inputs) ++readers[index(id)];
    }
    for (const auto& [name, tensor] : inputs) values[index(graph_.find(name))] = tensor;
    NetworkResult result;
    result.running_means.resize(graph_.statistics().size());
    result.running_variances.resize(graph_.statistics().size());
    for (std::size_t i = 0; i < problems_.size(); ++i) {
        const graph::Node& node = graph_.nodes()[i];
        problems_[i] = problem_of(node, values, readers, parameters);
        problems_[i].loss_scale = loss_scale;
        Solution solution = solve_(problems_[i], i);
        if (!is_fp32(node)) round(solution.output);
        values[index(node.output)] = std::move(solution.output);
        if (node.statistics >= 0) {
            result.running_means[index(node.statistics)] = std::move(solution.running_mean);
            result.running_variances[index(node.statistics)] = std::move(solution.running_variance);
        }
        if (i + 1 == problems_.size()) result.losses = solution.losses.values;
    }
    result.probabilities = values.back().values;
    return result;
}

Problem Network::problem_of(const graph::Node& node, std::vector<Tensor>& values,
                            std::vector<int>& readers,
                            const std::vector<Tensor>& parameters) const {
    Problem problem{.operation = node.operation};
    for (const auto id : node.inputs) {
        Tensor& value = values[index(id)];
        problem.inputs.push_back(--readers[index(id)] > 0 ? value : std::move(value));
    }
    for (const auto id : node.parameters) problem.parameters.push_back(parameters[index(id)]);
    if (!problem.parameters.empty()) {
        if (problem.parameters[0].shape.rank() > 1) round(problem.parameters[0]);
        problem.running_mean = problem.running_variance =
            Tensor(problem.parameters.back().shape, kInitialStatistics);
    }
    return problem;
}

std::vector<Tensor> Network::backward(const std::vector<Tensor>& parameters) {
    std::vector<Tensor> parameter_gradients(parameters.size());
    std::vector<std::vector<Tensor>> gradients(graph_.values().size());
    for (std::size_t i = problems_.size(); i-- > 0;) {
        const graph::Node& node = graph_.nodes()[i];
        problems_[i].output_gradients = std::move(gradients[index(node.output)]);
        Solution solution = solve_(problems_[i], i);
        problems_[i] = {};  // frees memory
        for (std::size_t input = 0; input < solution.input_gradients.size(); ++input) {
            round(solution.input_gradients[input]);
            gradients[index(node.inputs[input])].push_back(
                std::move(solution.input_gradients[input]));
        }
        for (std::size_t p = 0; p < node.parameters.size(); ++p) {
            parameter_gradients[index(node.parameters[p])] = solution.parameter_gradients[p];
        }
    }
    return parameter_gradients;
}

}  // namespace hpcai::naive
