// SPDX-License-Identifier: Apache-2.0
#include "solver.hpp"

namespace hpcai::naive {
namespace {

/// The pixels of one channel in one span of samples that share statistics.
struct Channel {
    std::vector<std::int64_t> pixels;  // indices in x
    double mean = 0, variance = 0;     // the variance divides by count()

    Channel(const ops::BatchNorm& op, const Tensor& x, std::int64_t first_sample,
            std::int64_t samples, std::int64_t channel) {
        const std::int64_t per_sample = op.input.elements() / op.input[0];
        for (std::int64_t i = first_sample * per_sample + channel;
             i < (first_sample + samples) * per_sample; i += op.input[3]) {
            pixels.push_back(i);
        }
        for (const std::int64_t i : pixels) mean += x[i] / count();
        for (const std::int64_t i : pixels) variance += (x[i] - mean) * (x[i] - mean) / count();
    }
    double count() const { return static_cast<double>(pixels.size()); }
};

}  // namespace

void Solver::operator()(const ops::BatchNorm& op) {
    const std::int64_t batch = op.input[0], channels = op.input[3];
    const std::int64_t span =
        problem.training && op.statistics_samples > 0 ? op.statistics_samples : batch;
    const double spans = static_cast<double>(batch / span);
    const Tensor &gamma = problem.parameters[0], &beta = problem.parameters[1];
    Tensor y(op.input), g = backward() ? output_gradient() : Tensor(op.input), dx(op.input);
    Tensor dgamma(gamma.shape), dbeta(beta.shape), means(gamma.shape), variances(gamma.shape);
    for (std::int64_t first = 0; first < batch; first += span) {
        for (std::int64_t c = 0; c < channels; ++c) {
            Channel channel(op, x(), first, span, c);
            const double n = channel.count();
            means[c] += channel.mean / spans;
            variances[c] += channel.variance * n / std::max(n - 1, 1.0) / spans;
            if (!problem.training || op.frozen) {
                channel.mean = problem.running_mean[c];
                channel.variance = problem.running_variance[c];
            }
            const double deviation = std::sqrt(channel.variance + op.epsilon);
            double sum_g = 0, sum_g_xhat = 0;
            for (const std::int64_t i : channel.pixels) {
                const double xhat = (x()[i] - channel.mean) / deviation;
                y[i] = gamma[c] * xhat + beta[c] + (op.add ? problem.inputs[1][i] : 0);
                if (op.relu && y[i] <= 0) y[i] = g[i] = 0;
                sum_g += g[i];
                sum_g_xhat += g[i] * xhat;
            }
            for (const std::int64_t i : channel.pixels) {
                const double xhat = (x()[i] - channel.mean) / deviation;
                const double shared = op.frozen ? 0 : sum_g / n + xhat * sum_g_xhat / n;
                dx[i] = gamma[c] / deviation * (g[i] - shared);
            }
            dgamma[c] += sum_g_xhat;
            dbeta[c] += sum_g;
        }
    }
    solution.running_mean = problem.running_mean;
    solution.running_variance = problem.running_variance;
    for (std::int64_t c = 0; c < channels && problem.training && !op.frozen; ++c) {
        const auto move = [&](double& running, double value) {
            running += op.momentum * (value - running);
        };
        move(solution.running_mean[c], means[c]);
        move(solution.running_variance[c], variances[c]);
    }
    solution.output = std::move(y);
    solution.input_gradients = {std::move(dx)};
    if (op.add) solution.input_gradients.push_back(std::move(g));
    if (!op.frozen) solution.parameter_gradients = {std::move(dgamma), std::move(dbeta)};
}

void Solver::operator()(const ops::DualNorm& op) {
    Problem inner{.operation = op.inner,
                  .inputs = {problem.inputs[1]},
                  .parameters = {problem.parameters[2], problem.parameters[3]},
                  .running_mean = problem.running_mean,
                  .running_variance = problem.running_variance};
    const Solution first = solve(inner);
    solution = solve({.operation = op.outer,
                      .inputs = {x(), first.output},
                      .parameters = {problem.parameters[0], problem.parameters[1]},
                      .output_gradients = problem.output_gradients,
                      .running_mean = problem.running_mean,
                      .running_variance = problem.running_variance});
    solution.inner_running_mean = first.running_mean;
    solution.inner_running_variance = first.running_variance;
    if (!backward()) return;
    inner.output_gradients = {solution.input_gradients[1]};
    Solution second = solve(inner);
    solution.input_gradients[1] = std::move(second.input_gradients[0]);
    for (Tensor& gradient : second.parameter_gradients) {
        solution.parameter_gradients.push_back(std::move(gradient));
    }
}

void Solver::operator()(const ops::PointwiseNorm& op) {
    Problem convolution{
        .operation = op.convolution, .inputs = {x()}, .parameters = {problem.parameters[0]}};
    std::vector<Tensor> inputs = problem.inputs;
    inputs[0] = solve(convolution).output;
    solution = solve({.operation = op.norm,
                      .inputs = inputs,
                      .parameters = {problem.parameters[1], problem.parameters[2]},
                      .output_gradients = problem.output_gradients,
                      .running_mean = problem.running_mean,
                      .running_variance = problem.running_variance});
    if (!backward()) return;
    convolution.output_gradients = {std::move(solution.input_gradients[0])};
    const Solution inner = solve(convolution);
    solution.input_gradients[0] = inner.input_gradients[0];
    solution.parameter_gradients.insert(solution.parameter_gradients.begin(),
                                        inner.parameter_gradients[0]);
}

void Solver::operator()(const ops::NormPool& op) {
    Problem norm{.operation = op.norm,
                 .inputs = problem.inputs,
                 .parameters = problem.parameters,
                 .running_mean = problem.running_mean,
                 .running_variance = problem.running_variance};
    Solution outer = solve({.operation = op.pool,
                            .inputs = {solve(norm).output},
                            .output_gradients = problem.output_gradients});
    if (backward()) norm.output_gradients = outer.input_gradients;
    solution = solve(norm);
    solution.output = std::move(outer.output);
}

}  // namespace hpcai::naive
