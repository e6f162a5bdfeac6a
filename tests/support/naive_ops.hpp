// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <hpcai/base/error.hpp>
#include <hpcai/ops/operation.hpp>
#include <hpcai/tensor/shape.hpp>

/// Every operation as plain loops over doubles, forward and backward: the reference for all
/// devices. The code is written to be easy to verify, not to be fast.
namespace hpcai::naive {

using tensor::Shape;

/// Doubles in canonical order: images (N, H, W, C), filters (K, R, S, C).
struct Tensor {
    Shape shape;
    std::vector<double> values;

    Tensor() = default;
    explicit Tensor(const Shape& extents, double value = 0)
        : shape(extents), values(static_cast<std::size_t>(extents.elements()), value) {}
    double& operator[](std::int64_t index) { return values[static_cast<std::size_t>(index)]; }
    double operator[](std::int64_t index) const { return values[static_cast<std::size_t>(index)]; }
};

inline std::int64_t image_index(const Shape& shape, std::int64_t n, std::int64_t h, std::int64_t w,
                                std::int64_t c) {
    return ((n * shape[1] + h) * shape[2] + w) * shape[3] + c;
}

/// One operation with all its inputs. Pixels and labels are inputs like any other.
struct Problem {
    ops::Operation operation;
    bool training = true;
    std::vector<Tensor> inputs;
    std::vector<Tensor> parameters;
    std::vector<Tensor> output_gradients;  // their sum is used; none: forward only
    Tensor running_mean, running_variance;
    double loss_scale = 1;
    bool is_first_layer = false;  // no input gradients
};

/// The results of an operation. Pixels and labels have input gradients without values.
struct Solution {
    Tensor output;
    Tensor sums;    // (2, K), if the output has them
    Tensor losses;  // (N), with a softmax only
    std::vector<Tensor> input_gradients;
    std::vector<Tensor> parameter_gradients;
    Tensor running_mean, running_variance;
};

inline Tensor sum(const std::vector<Tensor>& parts) {
    Tensor total = parts.front();
    for (std::size_t part = 1; part < parts.size(); ++part) {
        for (std::size_t i = 0; i < total.values.size(); ++i) {
            total.values[i] += parts[part].values[i];
        }
    }
    return total;
}

/// Calls body(n, p, q, h, w, r, s) for every pixel (h, w) under every window position (p, q).
template <typename Window, typename Body>
void for_each_tap(const Window& op, const Shape& output, const Body& body) {
    for (std::int64_t n = 0; n < output[0]; ++n)
        for (std::int64_t p = 0; p < output[1]; ++p)
            for (std::int64_t q = 0; q < output[2]; ++q)
                for (std::int64_t r = 0; r < op.kernel; ++r)
                    for (std::int64_t s = 0; s < op.kernel; ++s) {
                        const std::int64_t h = p * op.stride + r - op.padding;
                        const std::int64_t w = q * op.stride + s - op.padding;
                        if (h < 0 || h >= op.input[1] || w < 0 || w >= op.input[2]) continue;
                        body(n, p, q, h, w, r, s);
                    }
}

struct Solver {
    const Problem& problem;
    Solution solution;

    const Tensor& x() const { return problem.inputs[0]; }
    bool backward() const { return !problem.output_gradients.empty(); }
    Tensor output_gradient() const { return sum(problem.output_gradients); }

    void operator()(const ops::InputNormalize& op) {
        const std::int64_t channels = op.input[3];
        solution.output = Tensor(op.input);
        for (std::int64_t i = 0; i < op.input.elements(); ++i) {
            const auto c = static_cast<std::size_t>(i % channels);
            if (op.dtype != tensor::DType::u8) {
                solution.output[i] = x()[i];
                continue;
            }
            solution.output[i] = (x()[i] / 255 - op.mean[c]) / op.standard_deviation[c];
        }
    }

    void operator()(const ops::Convolution& op) {
        const Shape shape = output_shape(op);
        const Tensor& filters = problem.parameters[0];
        const Tensor dy = backward() ? output_gradient() : Tensor(shape);
        Tensor y(shape), dx(op.input), dw(filters.shape);
        for_each_tap(op, shape, [&](auto n, auto p, auto q, auto h, auto w, auto r, auto s) {
            for (std::int64_t k = 0; k < op.filters; ++k) {
                const std::int64_t to = image_index(shape, n, p, q, k);
                for (std::int64_t c = 0; c < op.input[3]; ++c) {
                    const std::int64_t from = image_index(op.input, n, h, w, c);
                    const std::int64_t weight = image_index(filters.shape, k, r, s, c);
                    y[to] += x()[from] * filters[weight];
                    dx[from] += dy[to] * filters[weight];
                    dw[weight] += dy[to] * x()[from];
                }
            }
        });
        solution.output = std::move(y);
        solution.input_gradients = {std::move(dx)};
        solution.parameter_gradients = {std::move(dw)};
    }

    void operator()(const ops::MaxPool& op) {
        const Shape shape = output_shape(op);
        std::vector<std::int64_t> winner(static_cast<std::size_t>(shape.elements()), -1);
        for_each_tap(op, shape, [&](auto n, auto p, auto q, auto h, auto w, auto, auto) {
            for (std::int64_t c = 0; c < shape[3]; ++c) {
                auto& best = winner[static_cast<std::size_t>(image_index(shape, n, p, q, c))];
                const std::int64_t index = image_index(op.input, n, h, w, c);
                if (best < 0 || x()[index] > x()[best])
                    best = index;  // the first one if several are equal
            }
        });
        const Tensor dy = backward() ? output_gradient() : Tensor(shape);
        solution.output = Tensor(shape);
        solution.input_gradients = {Tensor(op.input)};
        for (std::int64_t i = 0; i < shape.elements(); ++i) {
            const std::int64_t from = winner[static_cast<std::size_t>(i)];
            solution.output[i] = x()[from];
            solution.input_gradients[0][from] += dy[i];
        }
    }

    void operator()(const ops::GlobalAveragePool& op) {
        const std::int64_t pixels = op.input[1] * op.input[2], channels = op.input[3];
        const Tensor dy = backward() ? output_gradient() : Tensor(output_shape(op));
        solution.output = Tensor(output_shape(op));
        solution.input_gradients = {Tensor(op.input)};
        for (std::int64_t i = 0; i < op.input.elements(); ++i) {
            const std::int64_t to = i / (pixels * channels) * channels + i % channels;
            solution.output[to] += x()[i] / static_cast<double>(pixels);
            solution.input_gradients[0][i] = dy[to] / static_cast<double>(pixels);
        }
    }

    void operator()(const ops::Relu& op) {
        const Tensor dy = backward() ? output_gradient() : Tensor(op.input);
        solution.output = Tensor(op.input);
        solution.input_gradients = {Tensor(op.input)};
        for (std::int64_t i = 0; i < op.input.elements(); ++i) {
            solution.output[i] = std::max(x()[i], 0.0);
            solution.input_gradients[0][i] = x()[i] > 0 ? dy[i] : 0;
        }
    }

    void operator()(const ops::Add&) {
        solution.output = sum(problem.inputs);
        if (backward()) solution.input_gradients.assign(2, output_gradient());
    }

    void operator()(const ops::Linear& op) {
        const std::int64_t columns = op.input[1];
        const Tensor &w = problem.parameters[0], &b = problem.parameters[1];
        Tensor dy = backward() ? output_gradient() : Tensor(output_shape(op));
        Tensor y(output_shape(op)), dx(op.input), dw(w.shape), db(b.shape);
        for (std::int64_t n = 0; n < op.input[0]; ++n) {
            for (std::int64_t f = 0; f < op.features; ++f) {
                const std::int64_t to = n * op.features + f;
                y[to] = b[f];
                for (std::int64_t c = 0; c < columns; ++c) {
                    y[to] += x()[n * columns + c] * w[f * columns + c];
                }
                if (op.relu && y[to] <= 0) y[to] = dy[to] = 0;
                db[f] += dy[to];
                for (std::int64_t c = 0; c < columns; ++c) {
                    dx[n * columns + c] += dy[to] * w[f * columns + c];
                    dw[f * columns + c] += dy[to] * x()[n * columns + c];
                }
            }
        }
        solution.output = std::move(y);
        solution.input_gradients = {std::move(dx)};
        solution.parameter_gradients = {std::move(dw), std::move(db)};
    }

    void operator()(const ops::SoftmaxCrossEntropy& op) {
        const std::int64_t rows = op.input[0], classes = op.input[1];
        const Tensor& labels = problem.inputs[1];
        solution.output = Tensor(op.input);
        solution.losses = Tensor(Shape{rows});
        solution.input_gradients = {Tensor(op.input), Tensor()};
        for (std::int64_t n = 0; n < rows; ++n) {
            double highest = x()[n * classes], total = 0;
            for (std::int64_t f = 0; f < classes; ++f) {
                highest = std::max(highest, x()[n * classes + f]);
            }
            for (std::int64_t f = 0; f < classes; ++f) {
                total += std::exp(x()[n * classes + f] - highest);
            }
            for (std::int64_t f = 0; f < classes; ++f) {
                const std::int64_t i = n * classes + f;
                const double logarithm = x()[i] - highest - std::log(total);
                const double target =
                    op.label_smoothing / static_cast<double>(classes) +
                    (labels[n] == static_cast<double>(f) ? 1 : 0) * (1 - op.label_smoothing);
                solution.output[i] = std::exp(logarithm);
                if (labels[n] < 0) continue;
                solution.losses[n] -= target * logarithm;
                solution.input_gradients[0][i] =
                    problem.loss_scale * (std::exp(logarithm) - target);
            }
        }
    }

    /// The other operations, which this file and naive_<area>.hpp specialize.
    template <typename Operation>
    void operator()(const Operation& op);
    void operator()(const ops::AllGather&) { refuse_part(); }
    void operator()(const ops::ReduceScatter&) { refuse_part(); }

    /// Throws: one shard alone cannot be computed.
    [[noreturn]] static void refuse_part() {
        throw Error(ExitCode::internal, "a shard of a network");
    }
};

/// The pixels of one channel in one span of samples that share statistics.
struct Channel {
    std::vector<std::int64_t> pixels;
    double mean = 0, variance = 0;  // biased

    Channel(const ops::BatchNorm& op, const Tensor& x, std::int64_t first_sample,
            std::int64_t samples, std::int64_t channel) {
        const std::int64_t per_sample = op.input.elements() / op.input[0];
        for (std::int64_t i = first_sample * per_sample; i < (first_sample + samples) * per_sample;
             ++i) {
            if (i % op.input[3] == channel) pixels.push_back(i);
        }
        for (const std::int64_t i : pixels) mean += x[i] / count();
        for (const std::int64_t i : pixels) variance += (x[i] - mean) * (x[i] - mean) / count();
    }
    double count() const { return static_cast<double>(pixels.size()); }
};

template <>
inline void Solver::operator()(const ops::BatchNorm& op) {
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

/// Returns the sums of a value's channels over the batch, and of their squares, (2, C).
inline Tensor channel_sums(const Tensor& value) {
    const std::int64_t channels = value.shape[3];
    Tensor sums(Shape{2, channels});
    for (std::int64_t i = 0; i < value.shape.elements(); ++i) {
        sums[i % channels] += value[i];
        sums[channels + i % channels] += value[i] * value[i];
    }
    return sums;
}

/// Returns the output, and gradients if there are output gradients (losses: always).
inline Solution solve(const Problem& problem);

template <>  // running statistics are those of `outer`
inline void Solver::operator()(const ops::DualNorm& op) {
    Problem inner{.operation = op.inner,
                  .inputs = {problem.inputs[1]},
                  .parameters = {problem.parameters[2], problem.parameters[3]},
                  .running_mean = problem.running_mean,
                  .running_variance = problem.running_variance};
    solution = solve({.operation = op.outer,
                      .inputs = {x(), solve(inner).output},
                      .parameters = {problem.parameters[0], problem.parameters[1]},
                      .output_gradients = problem.output_gradients,
                      .running_mean = problem.running_mean,
                      .running_variance = problem.running_variance});
    if (!backward()) return;
    inner.output_gradients = {solution.input_gradients[1]};
    Solution second = solve(inner);
    solution.input_gradients[1] = std::move(second.input_gradients[0]);
    for (Tensor& gradient : second.parameter_gradients) {
        solution.parameter_gradients.push_back(std::move(gradient));
    }
}

template <>
inline void Solver::operator()(const ops::PointwiseNorm& op) {
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

template <>
inline void Solver::operator()(const ops::NormPool& op) {
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

#include "support/naive_detection.hpp"
#include "support/naive_pyramid.hpp"
#include "support/naive_segmentation.hpp"

namespace hpcai::naive {

inline Solution solve(const Problem& problem) {
    Solver solver{problem, {}};
    std::visit(solver, problem.operation);
    if (outputs_channel_sums(problem.operation))
        solver.solution.sums = channel_sums(solver.solution.output);
    if (problem.is_first_layer) solver.solution.input_gradients.assign(problem.inputs.size(), {});
    return std::move(solver.solution);
}

}  // namespace hpcai::naive
