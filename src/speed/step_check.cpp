// SPDX-License-Identifier: Apache-2.0
#include "step_check.hpp"

#include <cmath>
#include <future>
#include <limits>

#include <hpcai/base/clock.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/reference/naive_random.hpp>

#include "operation_check.hpp"
#include "whole_step.hpp"

namespace hpcai::speed {
namespace {

constexpr double kStepLogSeconds = 10;  // between two lines of progress
constexpr double kShift = 4;            // of norms, in standard deviations of their outputs

naive::Tensor tensor_of(const std::vector<float>& values, const tensor::Shape& shape) {
    naive::Tensor tensor(shape);
    tensor.values.assign(values.begin(), values.end());
    return tensor;
}

template <typename Number>
naive::Tensor tensor_of(const std::vector<std::byte>& bytes, const tensor::Shape& shape) {
    naive::Tensor tensor(shape);
    const auto* const numbers = reinterpret_cast<const Number*>(bytes.data());
    tensor.values.assign(numbers, numbers + shape.elements());
    return tensor;
}

std::map<std::string, naive::Tensor> naive_inputs(const graph::Graph& graph,
                                                  const config::Config& config) {
    std::map<std::string, naive::Tensor> inputs;
    for (const auto& [name, bytes] :
         random_inputs(graph, config.workload.classes, config.run.seed)) {
        const graph::Value& value = graph.value(graph.find(name));
        inputs[name] =
            value.dtype == tensor::DType::u8    ? tensor_of<std::uint8_t>(bytes, value.shape)
            : value.dtype == tensor::DType::s32 ? tensor_of<std::int32_t>(bytes, value.shape)
                                                : tensor_of<float>(bytes, value.shape);
    }
    return inputs;
}

/// Returns the factor of the filters of each parameter: below 1 before a norm, so that the variance
/// is not large in comparison to the epsilon of the norm.
std::vector<double> filter_factors(const graph::Graph& graph) {
    std::vector<double> factors(graph.parameters().size(), 1);
    for (const graph::Node& node : graph.nodes()) {
        const graph::NodeId reader = graph.only_consumer(node.output);
        if (reader == graph::kNoNode || node.parameters.empty()) continue;
        if (ops::is_one_of<ops::BatchNorm, ops::GroupNorm>(
                graph.nodes()[static_cast<std::size_t>(reader)].operation)) {
            factors[static_cast<std::size_t>(node.parameters[0])] = 0x1p-7;
        }
    }
    return factors;
}

/// Returns parameters for which a rounding error changes no gate of a ReLU after a norm: the shift
/// opens the gates of three of four channels and closes those of the fourth. Otherwise the
/// gradients of a network that rounds differently would differ by several percent.
std::vector<naive::Tensor> random_parameters(const graph::Graph& graph, tensor::DType compute) {
    const std::vector<double> factors = filter_factors(graph);
    std::vector<naive::Tensor> all;
    for (const graph::Parameter& parameter : graph.parameters()) {
        using graph::ParameterKind;
        const tensor::Shape& shape = parameter.shape;
        // A stream of its own, because a stream has numbers for 2^25 values only.
        naive::Random random(compute, 3000 + static_cast<std::uint32_t>(all.size()));
        const auto inputs = static_cast<double>(shape.elements() / shape[0]);
        // The scale of the last norm of a residual block; its shift is the next parameter.
        const bool is_branch =
            parameter.starts_at_zero ||
            (all.size() > 0 && graph.parameters()[all.size() - 1].starts_at_zero);
        const double size = is_branch ? 0.25 : 1;
        switch (parameter.kind) {
            case ParameterKind::filters:
                all.push_back(random.normal(shape, 0, factors[all.size()] * std::sqrt(2 / inputs)));
                break;
            case ParameterKind::linear_weight:
                all.push_back(random.normal(shape, 0, 0.25 / std::sqrt(inputs)));
                break;
            case ParameterKind::norm_scale:
                all.push_back(random.normal(shape, size, 0.1 * size));
                break;
            case ParameterKind::norm_shift:
                all.push_back(random.normal(shape, kShift * size, 0.1 * size));
                for (std::int64_t c = 3; c < shape[0]; c += 4) all.back()[c] *= -1;
                break;
            case ParameterKind::bias:
                all.push_back(random.normal(shape, 0, 0.1));
                break;
        }
    }
    return all;
}

/// Solves nodes and logs the progress.
naive::Network::Solve logged_solve(std::size_t nodes, Logger& log) {
    return [nodes, &log, watch = Stopwatch(), logged_seconds = 0.0](const naive::Problem& problem,
                                                                    std::size_t node) mutable {
        if (watch.seconds() - logged_seconds >= kStepLogSeconds) {
            logged_seconds = watch.seconds();
            log.info("naive loops, {} pass: operation {} of {}: {}",
                     problem.output_gradients.empty() ? "forward" : "backward", node + 1, nodes,
                     ops::name_of(problem.operation));
        }
        return solve(problem);
    };
}

/// Returns the type to which to round stored values. Both fp16 and tf32 have 11 bits.
tensor::DType stored_type(const device::Precision& precision) {
    return precision.tf32 ? tensor::DType::f16 : precision.compute;
}

double largest_of(const naive::Tensor& tensor) {
    double largest = 0;
    for (const double value : tensor.values) largest = std::max(largest, std::abs(value));
    return largest;
}

naive::Tensor row_tensor(const std::vector<double>& values) {
    naive::Tensor row(tensor::Shape{std::ssize(values)});
    row.values = values;
    return row;
}

double largest_difference(const naive::Tensor& a, const naive::Tensor& b) {
    double largest = 0;
    for (std::size_t i = 0; i < a.values.size(); ++i) {
        largest = std::max(largest, std::abs(a.values[i] - b.values[i]));
    }
    return largest;
}

/// The largest number of a tensor and its largest rounding error.
struct Magnitudes {
    double scale = 1e-30, rounding = 0;
};

/// Compares the results of the device with `exact`. Tolerances are `least`, plus four times the
/// error of `rounded`, a naive network that rounds as the device does, but at most kMaxTolerance.
class StepComparison {
public:
    StepComparison(const graph::Graph& graph, double least) : graph_(graph), least_(least) {}

    std::vector<TensorCheck> run(const naive::NetworkResult& got, const naive::NetworkResult& exact,
                                 const naive::NetworkResult& rounded) {
        for (std::size_t i = 0; i < exact.running_means.size(); ++i) {
            const std::string& name = graph_.statistics()[i].name;
            add(name + ".running_mean", got.running_means[i], exact.running_means[i],
                rounded.running_means[i]);
            add(name + ".running_var", got.running_variances[i], exact.running_variances[i],
                rounded.running_variances[i]);
        }
        add("losses", row_tensor(got.losses), row_tensor(exact.losses), row_tensor(rounded.losses));
        for (std::size_t i = exact.gradients.size(); i-- > 0;) {
            const graph::Parameter& parameter = graph_.parameters()[i];
            if (!parameter.is_trained) continue;
            Magnitudes least;
            if (parameter.kind == graph::ParameterKind::norm_shift) {
                // The gradient of a shift is 0 where a later norm removes the shift. Its rounding
                // error is that of the gradient of the scale, the parameter before.
                least = {largest_of(exact.gradients[i - 1]),
                         largest_difference(rounded.gradients[i - 1], exact.gradients[i - 1])};
            }
            add("gradient of " + parameter.name, got.gradients[i], exact.gradients[i],
                rounded.gradients[i], least);
        }
        return std::move(checks_);
    }

private:
    static constexpr double kMaxTolerance =
        0.9;  // a missing gradient of a filter has an error of 1

    void add(std::string name, const naive::Tensor& got, const naive::Tensor& exact,
             const naive::Tensor& rounded, const Magnitudes& least = {}) {
        const double scale = std::max(least.scale, largest_of(exact));
        const double rounding = std::max(least.rounding, largest_difference(rounded, exact));
        checks_.push_back(compare(std::move(name), got, exact,
                                  std::min(least_ + 4 * rounding / scale, kMaxTolerance),
                                  least.scale));
    }

    const graph::Graph& graph_;
    double least_;
    std::vector<TensorCheck> checks_;
};

}  // namespace

StepCheck::StepCheck(const config::Config& config, const device::Precision& precision, Logger& log)
    : config_(config),
      precision_(precision),
      graph_(models::make_model(config, {.batch = config.training.batch_size})),
      loss_scale_((stored_type(precision) == tensor::DType::f16 ? 1024.0f : 1.0f) /
                  static_cast<float>(config.training.batch_size)),
      parameters_(random_parameters(graph_, precision.compute)) {
    const auto naive_step = [&](tensor::DType stored, naive::Network::Solve solve_node) {
        return naive::Network(graph_, stored, std::move(solve_node))
            .run(naive_inputs(graph_, config_), parameters_, loss_scale_);
    };
    const auto exact = [&] {
        return naive_step(tensor::DType::f32, logged_solve(graph_.nodes().size(), log));
    };
    const tensor::DType stored = stored_type(precision);
    if (stored == tensor::DType::f32) {
        exact_ = rounded_ = exact();
        return;
    }
    std::future<naive::NetworkResult> rounded =
        std::async(std::launch::async, naive_step, stored,
                   [](const naive::Problem& problem, std::size_t) { return solve(problem); });
    exact_ = exact();
    rounded_ = rounded.get();
}

std::vector<TensorCheck> StepCheck::run(device::Device& device) const {
    const double least = stored_type(precision_) == tensor::DType::f32 ? 1e-4 : 1e-3;
    return StepComparison(graph_, least).run(run_on(device), exact_, rounded_);
}

naive::NetworkResult StepCheck::run_on(device::Device& device) const {
    const std::unique_ptr<comm::Communicator> self = comm::make_self_communicator();
    const std::unique_ptr<comm::GradientReducer> reducer = comm::make_mpi_reducer(*self);
    WholeStep step({config_, device, precision_, *reducer, config_.training.batch_size});
    graph::ParameterStore& store = step.store();
    for (std::size_t id = 0; id < parameters_.size(); ++id) {
        const std::vector<double>& values = parameters_[id].values;
        store.write(std::vector<float>(values.begin(), values.end()),
                    store.parameter(static_cast<graph::ParameterId>(id)));
    }
    const auto fill = [&](std::span<float> part, double value) {
        store.write(std::vector<float>(part.size(), static_cast<float>(value)), part);
    };
    // Detects missing writes
    fill(store.gradients(), std::numeric_limits<double>::quiet_NaN());
    fill(store.statistics(), naive::Network::kInitialStatistics);
    graph::Observer nobody;
    step.upload();
    step.network().reset_step_scalars(loss_scale_);
    step.network().prepare(nobody);
    step.network().forward(nobody);
    step.network().backward(nobody);
    naive::NetworkResult result;
    for (const std::span<const float> part : step.network().losses()) {
        std::vector<float> losses(part.size());
        device.download(std::as_writable_bytes(std::span(losses)), part.data());
        result.losses.insert(result.losses.end(), losses.begin(), losses.end());
    }
    for (std::size_t id = 0; id < parameters_.size(); ++id) {
        const auto gradient = store.gradient(static_cast<graph::ParameterId>(id));
        result.gradients.push_back(tensor_of(store.read(gradient), parameters_[id].shape));
    }
    for (std::size_t i = 0; i < graph_.statistics().size(); ++i) {
        const auto index = static_cast<std::int32_t>(i);
        const tensor::Shape channels{graph_.statistics()[i].channels};
        result.running_means.push_back(tensor_of(store.read(store.running_mean(index)), channels));
        result.running_variances.push_back(
            tensor_of(store.read(store.running_variance(index)), channels));
    }
    return result;
}

}  // namespace hpcai::speed
