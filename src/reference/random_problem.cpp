// SPDX-License-Identifier: Apache-2.0
#include <numeric>

#include <hpcai/base/error.hpp>
#include <hpcai/reference/naive_random.hpp>
#include <hpcai/reference/random_problem.hpp>

namespace hpcai::naive {
namespace {

constexpr std::int64_t kMinValues = 16;  // per channel; see has_random_problem()

/// Draws each tensor from a stream of its own, because a stream has only 2^26 numbers.
class Draw {
public:
    Tensor normal(tensor::DType dtype, const Shape& shape, double mean = 0, double deviation = 1) {
        return Random(dtype, ++stream_).normal(shape, mean, deviation);
    }
    Tensor below(const Shape& shape, std::int64_t n) {
        return Random(tensor::DType::f32, ++stream_).below(shape, static_cast<std::uint32_t>(n));
    }

private:
    std::uint32_t stream_ = 1000;
};

/// Returns boxes (N, G, 5) for images whose `cells` (N, H, W, classes) have `stride` x `stride`
/// pixels each. Every second box is empty.
Tensor random_boxes(Draw& draw, const Shape& shape, const Shape& cells, std::int64_t stride) {
    const std::int64_t height = cells[1] * stride, width = cells[2] * stride;
    const Tensor tops = draw.below(shape, height / 2), lefts = draw.below(shape, width / 2);
    const Tensor categories = draw.below(shape, cells[3]);
    Tensor boxes(shape);
    for (std::int64_t i = 0; i + 4 < shape.elements(); i += 10) {
        boxes[i] = lefts[i];
        boxes[i + 1] = tops[i];
        boxes[i + 2] = lefts[i] + static_cast<double>(width) / 2;
        boxes[i + 3] = tops[i] + static_cast<double>(height) / 2;
        boxes[i + 4] = categories[i];
    }
    return boxes;
}

Tensor random_input(Draw& draw, const ops::Operation& operation, std::size_t index,
                    tensor::DType compute) {
    const Shape shape = input_shapes(operation)[index];
    if (const auto* op = std::get_if<ops::InputNormalize>(&operation)) {
        if (op->dtype == tensor::DType::u8) return draw.below(shape, 256);
        return draw.normal(op->dtype, shape);
    }
    if (const auto* op = std::get_if<ops::SoftmaxCrossEntropy>(&operation)) {
        if (index == 1) return draw.below(shape, op->input[1]);
        return draw.normal(tensor::DType::f32, shape, 0, 3);
    }
    const auto* op = std::get_if<ops::CellCrossEntropy>(&operation);
    if (op != nullptr && index == 1) return random_boxes(draw, shape, op->input, op->stride);
    if (std::holds_alternative<ops::PointwiseNorm>(operation) && index == 0) {
        return draw.normal(compute, shape, 1, 0.5);  // kernels need a mean above 0, as after ReLUs
    }
    return draw.normal(compute, shape);
}

/// Returns the BatchNorm, or the outer norm of a DualNorm, whose running statistics the operation
/// updates; null if it has none.
ops::BatchNorm* norm_of(ops::Operation& operation) {
    if (auto* op = std::get_if<ops::BatchNorm>(&operation)) return op;
    if (auto* op = std::get_if<ops::DualNorm>(&operation)) return &op->outer;
    if (auto* op = std::get_if<ops::PointwiseNorm>(&operation)) return &op->norm;
    if (auto* op = std::get_if<ops::NormPool>(&operation)) return &op->norm;
    return nullptr;
}

bool* relu_of(ops::Operation& operation) {
    if (ops::BatchNorm* norm = norm_of(operation)) return &norm->relu;
    return std::visit(
        [](auto& op) -> bool* {
            if constexpr (requires { op.relu; }) return &op.relu;
            return nullptr;
        },
        operation);
}

const ops::MaxPool* pool_of(const ops::Operation& operation) {
    if (const auto* op = std::get_if<ops::NormPool>(&operation)) return &op->pool;
    return std::get_if<ops::MaxPool>(&operation);
}

/// Returns, for each output, the distance between the two largest numbers in its window.
Tensor window_gaps(const ops::MaxPool& pool, const Tensor& x) {
    const Shape shape = output_shape(pool);
    Tensor first(shape, -HUGE_VAL), second(shape, -HUGE_VAL);
    for_each_tap(pool, shape, [&](auto n, auto p, auto q, auto h, auto w, auto, auto) {
        for (std::int64_t c = 0; c < shape[3]; ++c) {
            const std::int64_t to = image_index(shape, n, p, q, c);
            const double value = x[image_index(pool.input, n, h, w, c)];
            second[to] = std::max(second[to], std::min(first[to], value));
            first[to] = std::max(first[to], value);
        }
    });
    for (std::size_t i = 0; i < first.values.size(); ++i) first.values[i] -= second.values[i];
    return first;
}

/// Returns the distance of each output from the nearest inputs without a derivative: |input| of a
/// ReLU, or the difference of the two largest numbers of a pooling window. Empty for other
/// operations.
Tensor distances_from_kinks(const Problem& problem) {
    Problem forward = problem;
    forward.output_gradients.clear();
    if (const ops::MaxPool* pool = pool_of(problem.operation)) {
        if (auto* op = std::get_if<ops::NormPool>(&forward.operation)) {
            forward.operation = ops::BatchNorm(op->norm);
            return window_gaps(*pool, solve(forward).output);
        }
        return window_gaps(*pool, problem.inputs[0]);
    }
    if (std::holds_alternative<ops::Relu>(problem.operation)) return problem.inputs[0];
    bool* const relu = relu_of(forward.operation);
    if (relu == nullptr || !*relu) return {};
    *relu = false;
    return solve(forward).output;
}

void clear_gradients_near_kinks(Problem& problem, double margin) {
    const Tensor distances = distances_from_kinks(problem);
    for (std::size_t i = 0; i < distances.values.size(); ++i) {
        if (std::abs(distances.values[i]) < margin) problem.output_gradients[0].values[i] = 0;
    }
}

double inner_product(const Tensor& a, const Tensor& b) {
    return std::transform_reduce(a.values.begin(), a.values.end(), b.values.begin(), 0.0);
}

/// Returns the value of the function whose gradients solve() computes.
double objective(Problem problem) {
    const std::vector<Tensor> gradients = std::move(problem.output_gradients);
    problem.output_gradients.clear();
    const Solution solution = solve(problem);
    if (gradients.empty()) {
        return problem.loss_scale *
               inner_product(solution.losses, Tensor(solution.losses.shape, 1));
    }
    return inner_product(solution.output, sum(gradients));
}

}  // namespace

bool has_random_problem(const ops::Operation& operation) {
    ops::Operation copy = operation;
    const ops::BatchNorm* const norm = norm_of(copy);
    if (norm != nullptr && norm->input.elements() / norm->input[3] < kMinValues) return false;
    return !ops::is_one_of<ops::AnchorTargets, ops::RpnLoss, ops::Proposals, ops::RoiTargets,
                           ops::RoiAlign, ops::RoiLoss, ops::Detections, ops::AllGather,
                           ops::ReduceScatter>(operation);
}

Problem random_problem(const ops::Operation& operation, const ProblemSetup& setup) {
    ensure(has_random_problem(operation), "no random problem for {}", name_of(operation));
    Draw draw;
    Problem problem{.operation = operation, .is_first_layer = setup.is_first_layer};
    for (std::size_t i = 0; i < input_shapes(operation).size(); ++i) {
        problem.inputs.push_back(random_input(draw, operation, i, setup.compute));
    }
    const bool is_norm =
        norm_of(problem.operation) != nullptr || std::holds_alternative<ops::GroupNorm>(operation);
    for (const Shape& shape : setup.parameters) {
        // The parameters end with pairs of gamma (the scale) and beta.
        const bool is_scale = is_norm && shape.rank() == 1 &&
                              problem.parameters.size() % 2 == setup.parameters.size() % 2;
        const auto dtype = is_norm && shape.rank() == 1 ? tensor::DType::f32 : setup.compute;
        problem.parameters.push_back(
            draw.normal(dtype, shape, is_scale ? 1 : 0, is_scale ? 0.5 : 1));
    }
    if (const ops::BatchNorm* norm = norm_of(problem.operation)) {
        const Shape channels{norm->input[3]};
        problem.running_mean = draw.normal(tensor::DType::f32, channels);
        problem.running_variance = Tensor(channels, 1.5);
    }
    problem.loss_scale = 0.125;
    if (ops::is_loss(operation) || std::holds_alternative<ops::InputNormalize>(operation)) {
        return problem;
    }
    problem.output_gradients = {draw.normal(setup.compute, output_shape(operation))};
    const bool is_rounded = setup.compute != tensor::DType::f32 && !pool_of(operation);
    clear_gradients_near_kinks(problem, is_rounded ? 0.05 : 1e-3);  // pools do not round
    return problem;
}

double gradient_error(const Problem& problem, const Solution& solution) {
    constexpr double kStep = 1e-6;
    Problem above = problem, below = problem;
    double slope = 0, squares = 0;
    std::uint32_t stream = 2000;
    const auto move = [&](Tensor& up, Tensor& down, const Tensor& gradient) {
        if (gradient.values.empty()) return;
        Random random(tensor::DType::f32, ++stream);
        const Tensor direction = random.normal(gradient.shape);
        for (std::size_t i = 0; i < direction.values.size(); ++i) {
            up.values[i] += kStep * direction.values[i];
            down.values[i] -= kStep * direction.values[i];
        }
        slope += inner_product(gradient, direction);
        squares += inner_product(gradient, gradient);
    };
    for (std::size_t i = 0; i < solution.input_gradients.size(); ++i) {
        move(above.inputs[i], below.inputs[i], solution.input_gradients[i]);
    }
    for (std::size_t i = 0; i < solution.parameter_gradients.size(); ++i) {
        move(above.parameters[i], below.parameters[i], solution.parameter_gradients[i]);
    }
    if (squares == 0) return 0;
    const double difference =
        (objective(std::move(above)) - objective(std::move(below))) / (2 * kStep);
    return std::abs(difference - slope) / std::sqrt(squares);
}

}  // namespace hpcai::naive
