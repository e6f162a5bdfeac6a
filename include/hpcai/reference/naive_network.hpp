// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <hpcai/graph/graph.hpp>
#include <hpcai/reference/naive_ops.hpp>

namespace hpcai::naive {

struct NetworkResult {
    std::vector<double> losses;         // (N)
    std::vector<double> probabilities;  // (N, classes)
    std::vector<Tensor> gradients;      // one per parameter
    // After the step, one per Graph::statistics(); without inner statistics of a DualNorm
    std::vector<Tensor> running_means, running_variances;
};

/// Runs a graph forward and backward by the naive operations, one after the other. Values that a
/// device stores in its compute type are also rounded to `stored` here, unless it is fp32; all
/// others are double.
class Network {
public:
    /// Computes the node with this number. Problems of the backward pass have output gradients,
    /// except that of a loss.
    using Solve = std::function<Solution(const Problem&, std::size_t node)>;

    /// Running means and variances have this value before the step.
    static constexpr double kInitialStatistics = 0x1p-12;

    /// `graph` must outlive the object. `solve_node` is solve() by default.
    explicit Network(
        const graph::Graph& graph, tensor::DType stored = tensor::DType::f32,
        Solve solve_node = [](const Problem& problem, std::size_t) { return solve(problem); });

    /// Runs one training step without update: batch statistics, gradients of the sum of the rows'
    /// losses times `loss_scale`.
    NetworkResult run(const std::map<std::string, Tensor>& inputs,
                      const std::vector<Tensor>& parameters, double loss_scale);

    /// Returns the sum of the rows' losses with batch statistics.
    double loss(const std::map<std::string, Tensor>& inputs, const std::vector<Tensor>& parameters);

private:
    void round(Tensor& tensor) const;
    NetworkResult forward(const std::map<std::string, Tensor>& inputs,
                          const std::vector<Tensor>& parameters, double loss_scale);
    Problem problem_of(const graph::Node& node, std::vector<Tensor>& values,
                       std::vector<int>& readers, const std::vector<Tensor>& parameters) const;
    std::vector<Tensor> backward(const std::vector<Tensor>& parameters);

    const graph::Graph& graph_;
    tensor::DType stored_;
    Solve solve_;
    std::vector<Problem> problems_;  // [node]
};

}  // namespace hpcai::naive
