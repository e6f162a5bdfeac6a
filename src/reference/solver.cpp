// SPDX-License-Identifier: Apache-2.0
#include "solver.hpp"

#include <numeric>

#include <hpcai/base/error.hpp>

namespace hpcai::naive {

Tensor sum(const std::vector<Tensor>& parts) {
    Tensor total = parts.front();
    for (std::size_t part = 1; part < parts.size(); ++part) {
        for (std::size_t i = 0; i < total.values.size(); ++i) {
            total.values[i] += parts[part].values[i];
        }
    }
    return total;
}

Tensor channel_sums(const Tensor& value) {
    const std::int64_t channels = value.shape[3];
    Tensor sums(Shape{2, channels});
    for (std::int64_t i = 0; i < value.shape.elements(); ++i) {
        sums[i % channels] += value[i];
        sums[channels + i % channels] += value[i] * value[i];
    }
    return sums;
}

void Solver::operator()(const ops::InputNormalize& op) {
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

void Solver::operator()(const ops::Convolution& op) {
    const Shape shape = output_shape(op);
    const Tensor& filters = problem.parameters[0];
    const Tensor dy = backward() ? output_gradient() : Tensor();
    Tensor y(shape), dx(op.input), dw(filters.shape);
    for_each_tap(op, shape, [&](auto n, auto p, auto q, auto h, auto w, auto r, auto s) {
        const std::int64_t channels = op.input[3], from = image_index(op.input, n, h, w, 0);
        for (std::int64_t k = 0; k < op.filters; ++k) {
            const std::int64_t to = image_index(shape, n, p, q, k);
            const std::int64_t weight = image_index(filters.shape, k, r, s, 0);
            const double* const pixel = x().values.data() + from;
            const double* const filter = filters.values.data() + weight;
            y[to] = std::transform_reduce(pixel, pixel + channels, filter, y[to]);
            for (std::int64_t c = 0; c < channels && backward(); ++c) {
                dx[from + c] += dy[to] * filter[c];
                dw[weight + c] += dy[to] * pixel[c];
            }
        }
    });
    solution.output = std::move(y);
    solution.input_gradients = {std::move(dx)};
    solution.parameter_gradients = {std::move(dw)};
}

void Solver::operator()(const ops::MaxPool& op) {
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

void Solver::operator()(const ops::GlobalAveragePool& op) {
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

void Solver::operator()(const ops::Relu& op) {
    const Tensor dy = backward() ? output_gradient() : Tensor(op.input);
    solution.output = Tensor(op.input);
    solution.input_gradients = {Tensor(op.input)};
    for (std::int64_t i = 0; i < op.input.elements(); ++i) {
        solution.output[i] = std::max(x()[i], 0.0);
        solution.input_gradients[0][i] = x()[i] > 0 ? dy[i] : 0;
    }
}

void Solver::operator()(const ops::Add&) {
    solution.output = sum(problem.inputs);
    if (backward()) solution.input_gradients.assign(2, output_gradient());
}

void Solver::operator()(const ops::Linear& op) {
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

void Solver::cross_entropy(std::int64_t row, const std::vector<double>& targets, double weight,
                           double& loss) {
    const auto classes = std::ssize(targets);
    const auto logits = x().values.begin() + row * classes;
    const double highest = *std::max_element(logits, logits + classes);
    double total = 0;
    for (std::int64_t k = 0; k < classes; ++k) total += std::exp(logits[k] - highest);
    for (std::int64_t k = 0; k < classes; ++k) {
        const double logarithm = logits[k] - highest - std::log(total);
        const double target = targets[static_cast<std::size_t>(k)];
        solution.output[row * classes + k] = std::exp(logarithm);
        loss -= weight * target * logarithm;
        solution.input_gradients[0][row * classes + k] =
            problem.loss_scale * weight * (std::exp(logarithm) - target);
    }
}

void Solver::operator()(const ops::SoftmaxCrossEntropy& op) {
    const std::int64_t rows = op.input[0], classes = op.input[1];
    solution.output = Tensor(op.input);
    solution.losses = Tensor(Shape{rows});
    solution.input_gradients = {Tensor(op.input), Tensor()};
    for (std::int64_t n = 0; n < rows; ++n) {
        const double label = problem.inputs[1][n];
        std::vector<double> targets(static_cast<std::size_t>(classes),
                                    op.label_smoothing / static_cast<double>(classes));
        if (label >= 0) targets.at(static_cast<std::size_t>(label)) += 1 - op.label_smoothing;
        cross_entropy(n, targets, label < 0 ? 0 : 1, solution.losses[n]);
    }
}

void Solver::refuse_shard() {
    throw Error(ExitCode::internal, "one shard of a network cannot be computed alone");
}

Solution solve(const Problem& problem) {
    Solver solver{problem, {}};
    std::visit(solver, problem.operation);
    if (outputs_channel_sums(problem.operation))
        solver.solution.sums = channel_sums(solver.solution.output);
    if (problem.is_first_layer) solver.solution.input_gradients.assign(problem.inputs.size(), {});
    return std::move(solver.solution);
}

}  // namespace hpcai::naive
