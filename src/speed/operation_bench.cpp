// SPDX-License-Identifier: Apache-2.0
#include "operation_bench.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <utility>

#include <hpcai/base/median.hpp>
#include <hpcai/base/philox.hpp>

namespace hpcai::speed {
namespace {

std::vector<graph::ParameterId> add_parameters(graph::Graph& graph,
                                               const ops::Operation& operation) {
    using graph::ParameterKind;
    if (const auto* op = std::get_if<ops::Convolution>(&operation)) {
        const std::int64_t channels = op->input[3];
        return {graph.add_parameter({.name = "weight",
                                     .shape = {op->filters, op->kernel, op->kernel, channels},
                                     .kind = ParameterKind::filters})};
    }
    if (const auto* op = std::get_if<ops::Linear>(&operation)) {
        const auto weight = graph.add_parameter({.name = "weight",
                                                 .shape = {op->features, op->input[1]},
                                                 .kind = ParameterKind::linear_weight});
        const auto bias = graph.add_parameter(
            {.name = "bias", .shape = {op->features}, .kind = ParameterKind::bias});
        return {weight, bias};
    }
    ensure(std::holds_alternative<ops::Add>(operation), "{} cannot be measured alone",
           name_of(operation));
    return {};
}

/// Returns a random sequence that repeats. Drawing all numbers would take longer than the
/// measurement, and zeros would change the measured time.
std::vector<float> random_numbers(std::int64_t count) {
    constexpr std::size_t kPeriod = 65'537;  // a prime, so that rows differ
    std::vector<float> numbers(static_cast<std::size_t>(count));
    CounterStream random(1, RandomPurpose::synthetic_data);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        numbers[i] =
            i < kPeriod ? static_cast<float>(random.uniform() - 0.5) : numbers[i - kPeriod];
    }
    return numbers;
}

}  // namespace

graph::Graph make_operation_graph(const ops::Operation& operation, bool needs_input_gradient) {
    graph::Graph graph;
    std::vector<graph::ValueId> inputs;
    for (const tensor::Shape& shape : input_shapes(operation)) {
        graph::Value value;
        value.name = "input" + std::to_string(inputs.size());
        value.shape = shape;
        inputs.push_back(graph.add_received(value, needs_input_gradient));
    }
    std::vector<graph::ParameterId> parameters = add_parameters(graph, operation);
    graph.add_output(
        graph.add_node("operation", operation, std::move(inputs), std::move(parameters)));
    return graph;
}

OperationBench::OperationBench(const ops::Operation& operation, const Setup& setup)
    : device_(setup.device),
      precision_(setup.precision),
      graph_(make_operation_graph(operation, setup.needs_input_gradient)),
      store_(graph_, setup.device, 0),
      network_(graph_, setup.device, store_,
               {.mode = setup.mode,
                .compute = setup.precision.compute,
                .tf32 = setup.precision.tf32,
                .int8 = setup.precision.int8}) {
    for (const graph::KernelCall& call : network_.calls()) {
        if (call.pass != ops::Pass::prepare) kernel_ = call.kernel;
    }
    ensure(kernel_ != nullptr, "{} has no pass", name_of(operation));
    fill_tensors();
}

std::vector<ops::Pass> OperationBench::passes() const {
    std::vector<ops::Pass> passes;
    for (const graph::KernelCall& call : network_.calls()) {
        if (call.pass != ops::Pass::prepare && call.kernel == kernel_) passes.push_back(call.pass);
    }
    return passes;
}

void OperationBench::fill_tensors() {
    if (!store_.parameters().empty()) {
        const auto count = static_cast<std::int64_t>(store_.parameters().size());
        store_.write(random_numbers(count), store_.parameters());
    }
    const auto store_random = [&](void* memory, const tensor::Shape& shape) {
        device_.store_channels_last(memory, shape, precision_.compute,
                                    random_numbers(shape.elements()));
    };
    for (const graph::ValueId input : node().inputs) {
        const graph::Value& value = graph().value(input);
        store_random(network_.input(value.name).data(), value.shape);
    }
    graph::Observer no_observer;
    network_.prepare(no_observer);
    kernel_->run(ops::Pass::forward);
    if (passes().size() > 1) {
        const graph::Value& output = graph().value(node().output);
        store_random(network_.output_gradient(output.name).data(), output.shape);
    }
    device_.synchronize();
}

TimedWork::TimedWork(device::Device& device, std::vector<Work> pieces, bool has_upload)
    : device_(device), pieces_(std::move(pieces)) {
    if (has_upload || !device.can_record()) return;
    timeline_ = device.make_timeline();
    recording_ = device.record([this] { enqueue(); });
}

std::vector<double> TimedWork::run() {
    if (recording_ != nullptr) {
        recording_->run();
    } else {
        timeline_ = device_.make_timeline();
        enqueue();
    }
    return timeline_->seconds();
}

void TimedWork::enqueue() {
    timeline_->mark();
    for (const Work& piece : pieces_) {
        piece();
        timeline_->mark();
    }
}

double flops_in(const ops::Flops& flops, ops::Pass pass) {
    if (pass == ops::Pass::forward) return static_cast<double>(flops.forward);
    if (pass == ops::Pass::weight_gradient) return static_cast<double>(flops.weight_gradient);
    return pass == ops::Pass::input_gradient ? static_cast<double>(flops.input_gradient) : 0;
}

double median_seconds(int calls, const std::function<double()>& measure) {
    std::vector<double> seconds;
    for (int call = 0; call < calls; ++call) seconds.push_back(measure());
    return median(std::move(seconds));
}

std::pair<Quantity, Quantity> bounds_of(const MedianInterval& interval) {
    if (!interval.bounds) return {no_value("fewer than 6 runs"), no_value("fewer than 6 runs")};
    return {{interval.bounds->first, ""}, {interval.bounds->second, ""}};
}

int runs_in_a_row(device::Device& device, const Work& work) {
    if (!device.can_record()) return 1;
    work();
    constexpr double kTargetSeconds = 1e-3, kMaxRepeats = 20;
    TimedWork once(device, {work});
    once.run();
    const double seconds = std::max(once.run()[0], kTargetSeconds / kMaxRepeats);
    return static_cast<int>(std::ceil(std::min(kTargetSeconds / seconds, kMaxRepeats)));
}

CoreWait::Times CoreWait::read() {
    Times times;
    std::ifstream("/proc/thread-self/schedstat") >> times.running >> times.waiting;
    return times;
}

void CoreWait::log(Logger& log) const {
    const Times now = read();
    const double running = now.running - begin_.running, waiting = now.waiting - begin_.waiting;
    const double percent = 100 * waiting / (running + waiting);
    if (!(percent > 5)) return;  // it may be NaN
    log.warn("other threads used the core for {:.0f} % of the time; repeat on an idle machine",
             percent);
}

}  // namespace hpcai::speed
