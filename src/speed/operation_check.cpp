// SPDX-License-Identifier: Apache-2.0
#include "operation_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <hpcai/base/median_interval.hpp>
#include <hpcai/reference/naive_int8.hpp>
#include <hpcai/reference/problem_runner.hpp>
#include <hpcai/reference/random_problem.hpp>
#include <hpcai/reference/tolerance.hpp>

#include "operation_bench.hpp"
#include "rates.hpp"

namespace hpcai::speed {
namespace {

constexpr device::RoundingKey kRoundingKey{.seed = 1};

/// Returns whether the operation consists of several that a device may fuse.
bool is_fused(const ops::Operation& operation) {
    const auto* norm = std::get_if<ops::BatchNorm>(&operation);
    return outputs_channel_sums(operation) || (norm != nullptr && norm->from_sums) ||
           ops::is_one_of<ops::DualNorm, ops::PointwiseNorm, ops::NormPool>(operation);
}

device::Tolerance tolerance_of(const ops::Operation& operation, const device::Precision& precision,
                               bool is_gpu) {
    auto tolerance = is_gpu ? device::gpu_tolerance_of(precision.compute, precision.tf32)
                            : device::tolerance_of(precision.compute);
    if (const auto* op = std::get_if<ops::MaxPool>(&operation)) {
        // The gradient of an input pixel is a rounded sum over the windows that contain the pixel:
        // along each axis, at most this number.
        const std::int64_t windows = (op->kernel + op->stride - 1) / op->stride;
        tolerance = device::rounded(static_cast<int>(windows * windows), tolerance);
    }
    return is_fused(operation) ? device::fused_tolerance_of(tolerance) : tolerance;
}

bool has_filters(const ops::Operation& operation) {
    return ops::is_one_of<ops::Convolution, ops::Linear>(operation);
}

/// Returns how many terms are added for each number of an output or an input gradient.
std::int64_t terms_of(const ops::Operation& operation, ops::Pass pass) {
    const bool is_forward = pass == ops::Pass::forward;
    if (const auto* op = std::get_if<ops::PointwiseNorm>(&operation)) {
        return terms_of(op->convolution, pass);
    }
    if (const auto* op = std::get_if<ops::Convolution>(&operation)) {
        return op->kernel * op->kernel * (is_forward ? op->input[3] : op->filters);
    }
    if (const auto* op = std::get_if<ops::Linear>(&operation)) {
        return is_forward ? op->input[1] : op->features;
    }
    const auto* op = std::get_if<ops::GlobalAveragePool>(&operation);
    return op != nullptr && is_forward ? op->input[1] * op->input[2] : 1;
}

/// Returns how many terms are added for a sum over a channel, such as a parameter's gradient.
std::int64_t terms_of_channel(const ops::Operation& operation) {
    const tensor::Shape shape =
        has_filters(operation) ? output_shape(operation) : input_shapes(operation)[0];
    return shape.elements() / *(shape.end() - 1);
}

/// Returns the tolerance of an fp32 sum of `terms`: the error grows with the root of their number.
double tolerance_of_terms(std::int64_t terms) {
    return std::ldexp(std::sqrt(static_cast<double>(terms)), -24);
}

/// Returns the solution to compare with: `exact`, or with precision int8 that of a convolution
/// whose factors are rounded to integers.
naive::Solution solve_as(const naive::Problem& problem, const naive::Solution& exact,
                         const device::Precision& precision) {
    const auto* op = std::get_if<ops::Convolution>(&problem.operation);
    if (!precision.int8 || op == nullptr || !computes_in_int8(*op, ops::Pass::forward)) {
        return exact;
    }
    naive::Solution rounded = exact;
    naive::Int8Solution integers = solve_int8(*op, problem, kRoundingKey, {});
    rounded.output = std::move(integers.output);
    if (computes_in_int8(*op, ops::Pass::input_gradient) && !problem.is_first_layer) {
        rounded.input_gradients[0] = std::move(integers.input_gradient);
    }
    return rounded;
}

std::vector<std::int64_t> place_of(std::int64_t index, const tensor::Shape& shape) {
    std::vector<std::int64_t> place(shape.rank());
    for (std::size_t axis = shape.rank(); axis-- > 0; index /= shape[axis]) {
        place[axis] = index % shape[axis];
    }
    return place;
}

Quantity finite_or_reason(double number) {
    return value_or_reason(std::isfinite(number) ? std::optional(number) : std::nullopt,
                           "a computed number is not finite");
}

/// Returns a row of (2, K) channel sums, or no values if there are none.
naive::Tensor row_of(const naive::Tensor& sums, std::int64_t row) {
    if (sums.values.empty()) return {};
    const std::int64_t channels = sums.shape[1];
    naive::Tensor values(tensor::Shape{channels});
    std::copy_n(sums.values.begin() + row * channels, channels, values.values.begin());
    return values;
}

/// Compares the results of a kernel. A pass has the comparisons of the results that it computes.
class Comparison {
public:
    Comparison(const naive::Solution& got, const naive::Solution& want,
               const device::Tolerance& tolerance)
        : got_(got), want_(want), tolerance_(tolerance) {}

    std::vector<TensorCheck> tensors(const ops::Operation& operation, ops::Pass pass) {
        const double channel_sum = tolerance_of_terms(terms_of_channel(operation));
        const double stored_sums = std::max(tolerance_.stored, channel_sum);
        const double fp32_sums = std::max(tolerance_.fp32, channel_sum);
        min_tolerance_ = tolerance_of_terms(terms_of(operation, pass));
        if (pass == ops::Pass::forward) {
            const bool is_fp32 = output_dtype(operation) == tensor::DType::f32;
            add("output", got_.output, want_.output, is_fp32 ? tolerance_.fp32 : tolerance_.stored);
            add("channel_sums", row_of(got_.sums, 0), row_of(want_.sums, 0), stored_sums);
            add("channel_squares", row_of(got_.sums, 1), row_of(want_.sums, 1), stored_sums);
            const tensor::Shape input = input_shapes(operation)[0];
            add("losses", got_.losses, want_.losses,
                std::max(tolerance_.fp32, tolerance_of_terms(input.elements() / input[0])));
            add("running_mean", got_.running_mean, want_.running_mean, fp32_sums);
            add("running_variance", got_.running_variance, want_.running_variance, fp32_sums);
            add("inner_running_mean", got_.inner_running_mean, want_.inner_running_mean, fp32_sums);
            add("inner_running_variance", got_.inner_running_variance, want_.inner_running_variance,
                fp32_sums);
        }
        if (pass == ops::Pass::input_gradient) {
            add_all("input_gradient", got_.input_gradients, want_.input_gradients,
                    tolerance_.stored);
        }
        if (pass ==
            (has_filters(operation) ? ops::Pass::weight_gradient : ops::Pass::input_gradient)) {
            const bool is_convolution = std::holds_alternative<ops::Convolution>(operation);
            add_all("parameter_gradient", got_.parameter_gradients, want_.parameter_gradients,
                    std::max(is_convolution ? tolerance_.filters : tolerance_.fp32, channel_sum));
        }
        return std::move(tensors_);
    }

private:
    void add(std::string name, const naive::Tensor& got, const naive::Tensor& want,
             double tolerance) {
        if (want.values.empty()) return;
        tensors_.push_back(
            compare(std::move(name), got, want, std::max(tolerance, min_tolerance_)));
    }
    void add_all(const std::string& name, const std::vector<naive::Tensor>& got,
                 const std::vector<naive::Tensor>& want, double tolerance) {
        for (std::size_t i = 0; i < want.size(); ++i) {
            if (!got[i].values.empty()) {
                add(fmt::format("{} {}", name, i), got[i], want[i], tolerance);
            }
        }
    }

    const naive::Solution& got_;
    const naive::Solution& want_;
    device::Tolerance tolerance_;
    double min_tolerance_ = 0;  // in the current pass
    std::vector<TensorCheck> tensors_;
};

/// Replaces each tensor of a run by that of a later run with a larger error.
void keep_worst(std::vector<TensorCheck>& worst, std::vector<TensorCheck> later) {
    if (worst.empty()) worst = later;
    for (std::size_t i = 0; i < worst.size(); ++i) {
        if (later[i].severity() > worst[i].severity()) worst[i] = std::move(later[i]);
    }
}

void measure(device::Device& device, const Work& work, int runs, PassCheck& check) {
    const int in_a_row = runs_in_a_row(device, work);
    TimedWork timed(device, {[&] {
                        for (int i = 0; i < in_a_row; ++i) work();
                    }});
    std::vector<double> seconds;
    for (int run = 0; run < runs; ++run) seconds.push_back(timed.run()[0] / in_a_row);
    const MedianInterval interval = median_interval(std::move(seconds));
    check.median_seconds = interval.median;
    std::tie(check.low_seconds, check.high_seconds) = bounds_of(interval);
}

/// Returns the shape of an operation and its options that the name does not include.
std::string description_of(const ops::Operation& operation) {
    std::string text = shape_text(operation);
    if (const auto* op = std::get_if<ops::Convolution>(&operation)) {
        text += fmt::format(", padding {}{}", op->padding, op->sums ? ", with sums" : "");
    }
    if (const auto* op = std::get_if<ops::PointwiseNorm>(&operation)) {
        text += fmt::format(" of {} channels{}", op->convolution.input[3],
                            op->norm.add ? ", add, relu" : "");
    }
    if (const auto* op = std::get_if<ops::BatchNorm>(&operation)) {
        text += op->from_sums ? ", from sums" : "";
    }
    const auto add_epsilon = [&](double number, const char* norm = "") {
        if (number != ops::BatchNorm{}.epsilon) text += fmt::format(", {}epsilon {}", norm, number);
    };
    std::visit(
        [&](const auto& op) {
            if constexpr (requires { op.epsilon; }) add_epsilon(op.epsilon);
            if constexpr (requires { op.norm; }) add_epsilon(op.norm.epsilon);
            if constexpr (requires { op.inner; }) add_epsilon(op.inner.epsilon, "inner ");
            if constexpr (requires { op.outer; }) add_epsilon(op.outer.epsilon);
        },
        operation);
    return text;
}

}  // namespace

TensorCheck compare(std::string name, const naive::Tensor& got, const naive::Tensor& want,
                    double tolerance, double least_scale) {
    double largest = std::max(least_scale, 1e-30), sum = 1e-30, squares = 1e-30;
    for (const double value : want.values) {
        largest = std::max(largest, std::abs(value));
        sum += std::max(std::abs(value), least_scale);
        squares += std::max(value * value, least_scale * least_scale);
    }
    double error = -1, error_sum = 0, error_squares = 0;
    std::int64_t place = 0;
    for (std::int64_t i = 0; i < want.shape.elements(); ++i) {
        const double difference = std::abs(got[i] - want[i]);
        error_sum += difference;
        error_squares += difference * difference;
        const double own_error = std::isnan(difference) ? HUGE_VAL : difference;
        if (own_error > error) {
            error = own_error;
            place = i;
        }
    }
    return {.tensor = std::move(name),
            .shape = {want.shape.begin(), want.shape.end()},
            .place = place_of(place, want.shape),
            .computed = finite_or_reason(got[place]),
            .expected = want[place],
            .largest_error = finite_or_reason(error / largest),
            .l1_error = finite_or_reason(error_sum / sum),
            .l2_error = finite_or_reason(std::sqrt(error_squares / squares)),
            .tolerance = tolerance,
            .passed = error <= tolerance * largest};
}

std::vector<DistinctOperation> distinct_operations(const graph::Graph& graph) {
    std::vector<DistinctOperation> all;
    for (const graph::Node& node : graph.nodes()) {
        const bool is_first = graph.needs_no_input_gradient(node);
        const std::string shape =
            description_of(node.operation) + (is_first ? ", no input gradient" : "");
        const auto same = std::ranges::find_if(all, [&](const DistinctOperation& other) {
            return other.shape == shape && name_of(other.operation) == name_of(node.operation);
        });
        if (same != all.end()) {
            ++same->nodes;
            continue;
        }
        all.push_back({shape, node.name, 1, node.operation, {}, is_first});
        for (const graph::ParameterId id : node.parameters) {
            all.back().parameters.push_back(graph.parameters()[static_cast<std::size_t>(id)].shape);
        }
    }
    return all;
}

OperationCheck check_operation(const DistinctOperation& distinct, device::Device& device,
                               const device::Precision& precision, int runs) {
    const naive::Problem problem = naive::random_problem(
        distinct.operation, {precision.compute, distinct.parameters, distinct.is_first_layer});
    naive::ProblemRunner runner(device,
                                {.kernel = {.compute = precision.compute,
                                            .tf32 = precision.tf32,
                                            .int8 = precision.int8,
                                            .rounding = kRoundingKey}},
                                problem);
    const naive::Solution exact = solve(problem);
    OperationCheck check{.operation = ops::name_of(distinct.operation),
                         .shape = distinct.shape,
                         .node = distinct.node,
                         .nodes = distinct.nodes,
                         .gradient_error = gradient_error(problem, exact),
                         .bits_are_equal = true};
    const naive::Solution want = solve_as(problem, exact, precision);
    const device::Tolerance tolerance =
        tolerance_of(distinct.operation, precision, !device.uuid().empty());
    std::vector<ops::Pass> passes = runner.kernel().passes();
    std::erase(passes, ops::Pass::prepare);
    std::vector<std::byte> bits;
    for (int run = 0; run < kComparedRuns; ++run) {
        runner.run();
        const std::vector<std::byte> other = runner.bits();
        if (run > 0 && other == bits) continue;
        if (run == 0) bits = other;
        check.bits_are_equal = other == bits;
        const naive::Solution got = runner.read();
        Comparison comparison(got, want, tolerance);
        for (std::size_t i = 0; i < passes.size(); ++i) {
            if (run == 0) check.passes.push_back({.pass = std::string(name_of(passes[i]))});
            keep_worst(check.passes[i].tensors, comparison.tensors(distinct.operation, passes[i]));
        }
    }
    for (std::size_t i = 0; i < passes.size(); ++i) {
        measure(
            device, [&] { runner.kernel().run(passes[i]); }, runs, check.passes[i]);
    }
    check.writes_past_end = runner.wrote_past_end();
    const bool may_differ = !device.determinism().is_repeatable;
    check.passed = !check.writes_past_end && (check.bits_are_equal || may_differ) &&
                   check.gradient_error <= kGradientTolerance &&
                   std::ranges::all_of(check.passes, [](const PassCheck& pass) {
                       return std::ranges::all_of(pass.tensors, &TensorCheck::passed);
                   });
    return check;
}

}  // namespace hpcai::speed
