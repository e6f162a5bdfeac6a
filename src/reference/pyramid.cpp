// SPDX-License-Identifier: Apache-2.0
#include "solver.hpp"

/// The operations of feature pyramids and group normalization.
namespace hpcai::naive {

void Solver::operator()(const ops::Bias& op) {
    const std::int64_t channels = op.input[3];
    Tensor y(op.input), dx = backward() ? output_gradient() : Tensor(op.input);
    Tensor db(Shape{channels});
    for (std::int64_t i = 0; i < op.input.elements(); ++i) {
        y[i] = x()[i] + problem.parameters[0][i % channels];
        if (op.relu && y[i] <= 0) y[i] = dx[i] = 0;
        db[i % channels] += dx[i];
    }
    solution.output = std::move(y);
    solution.input_gradients = {std::move(dx)};
    solution.parameter_gradients = {std::move(db)};
}

void Solver::operator()(const ops::UpsampleAdd& op) {
    const Tensor dy = backward() ? output_gradient() : Tensor(op.input);
    Tensor y = x(), dz(op.coarse);
    for (std::int64_t n = 0; n < op.input[0]; ++n)
        for (std::int64_t i = 0; i < op.input[1]; ++i)
            for (std::int64_t j = 0; j < op.input[2]; ++j)
                for (std::int64_t c = 0; c < op.input[3]; ++c) {
                    const std::int64_t fine = image_index(op.input, n, i, j, c);
                    const std::int64_t coarse =
                        image_index(op.coarse, n, i * op.coarse[1] / op.input[1],
                                    j * op.coarse[2] / op.input[2], c);
                    y[fine] += problem.inputs[1][coarse];
                    dz[coarse] += dy[fine];
                }
    solution.output = std::move(y);
    solution.input_gradients = {dy, std::move(dz)};
}

void Solver::operator()(const ops::GroupNorm& op) {
    const std::int64_t channels = op.input[3], per_group = channels / op.groups;
    const std::int64_t per_sample = op.input.elements() / op.input[0];
    const Tensor &gamma = problem.parameters[0], &beta = problem.parameters[1];
    Tensor y(op.input), g = backward() ? output_gradient() : Tensor(op.input), dx(op.input);
    Tensor dgamma(gamma.shape), dbeta(beta.shape);
    for (std::int64_t n = 0; n < op.input[0]; ++n) {
        for (std::int64_t group = 0; group < op.groups; ++group) {
            std::vector<std::int64_t> members;
            for (std::int64_t i = n * per_sample; i < (n + 1) * per_sample; ++i) {
                if (i % channels / per_group == group) members.push_back(i);
            }
            const double count = static_cast<double>(members.size());
            double mean = 0, variance = 0, sum_g = 0, sum_g_xhat = 0;
            for (const std::int64_t i : members) mean += x()[i] / count;
            for (const std::int64_t i : members)
                variance += (x()[i] - mean) * (x()[i] - mean) / count;
            const double deviation = std::sqrt(variance + op.epsilon);
            for (const std::int64_t i : members) {
                const std::int64_t c = i % channels;
                const double xhat = (x()[i] - mean) / deviation;
                y[i] = gamma[c] * xhat + beta[c];
                if (op.relu && y[i] <= 0) y[i] = g[i] = 0;
                dgamma[c] += g[i] * xhat;
                dbeta[c] += g[i];
                sum_g += gamma[c] * g[i];
                sum_g_xhat += gamma[c] * g[i] * xhat;
            }
            for (const std::int64_t i : members) {
                const double xhat = (x()[i] - mean) / deviation;
                dx[i] = (gamma[i % channels] * g[i] - sum_g / count - xhat * sum_g_xhat / count) /
                        deviation;
            }
        }
    }
    solution.output = std::move(y);
    solution.input_gradients = {std::move(dx)};
    solution.parameter_gradients = {std::move(dgamma), std::move(dbeta)};
}

}  // namespace hpcai::naive
