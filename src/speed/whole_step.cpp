// SPDX-License-Identifier: Apache-2.0
#include "whole_step.hpp"

#include <hpcai/base/philox.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/training/initialize.hpp>

namespace hpcai::speed {
namespace {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
}

CounterStream stream_of_row(std::uint64_t seed, std::int64_t row) {
    return {seed, RandomPurpose::synthetic_data, static_cast<std::uint32_t>(row)};
}

template <typename T, typename Draw>
std::vector<std::byte> random_images(const tensor::Shape& shape, std::uint64_t seed,
                                     const Draw& draw) {
    std::vector<T> values;
    values.reserve(static_cast<std::size_t>(shape.elements()));
    for (std::int64_t row = 0; row < shape[0]; ++row) {
        CounterStream random = stream_of_row(seed, row);
        for (std::int64_t i = 0; i < shape.elements() / shape[0]; ++i) {
            values.push_back(static_cast<T>(draw(random)));
        }
    }
    return bytes_of(values);
}

/// Returns boxes of `shape` (images, boxes, 5) in f32: left, top, right, bottom and category. The
/// images have the shape `images` (images, height, width, channels).
std::vector<std::byte> random_boxes(const tensor::Shape& shape, const tensor::Shape& images,
                                    std::int64_t classes, std::uint64_t seed) {
    constexpr std::int64_t kMaxBoxes = 8;
    const auto height = static_cast<double>(images[1]), width = static_cast<double>(images[2]);
    std::vector<float> values(static_cast<std::size_t>(shape.elements()), 0.0f);
    for (std::int64_t row = 0; row < shape[0]; ++row) {
        CounterStream random = stream_of_row(seed, row);
        for (std::int64_t box = 0; box < std::min(shape[1], kMaxBoxes); ++box) {
            const double box_height = height * (0.125 + 0.375 * random.uniform());
            const double box_width = width * (0.125 + 0.375 * random.uniform());
            const double top = (height - box_height) * random.uniform();
            const double left = (width - box_width) * random.uniform();
            const auto category = 1 + random.below(static_cast<std::uint32_t>(classes));
            float* fields = values.data() + (row * shape[1] + box) * shape[2];
            fields[0] = static_cast<float>(left);
            fields[1] = static_cast<float>(top);
            fields[2] = static_cast<float>(left + box_width);
            fields[3] = static_cast<float>(top + box_height);
            fields[4] = static_cast<float>(category);
        }
    }
    return bytes_of(values);
}

graph::NetworkOptions options_of(const device::Precision& precision) {
    return {.compute = precision.compute, .tf32 = precision.tf32, .int8 = precision.int8};
}

}  // namespace

std::map<std::string, std::vector<std::byte>> random_inputs(const graph::Graph& graph,
                                                            std::int64_t classes,
                                                            std::uint64_t seed) {
    std::map<std::string, std::vector<std::byte>> inputs;
    const tensor::Shape& images = graph.value(graph.find("images")).shape;
    for (const graph::Value& value : graph.values()) {
        if (value.producer != graph::kNoNode) continue;
        std::vector<std::byte>& bytes = inputs[value.name];
        std::vector<std::int32_t> numbers;
        for (std::int64_t row = 0; row < value.shape[0]; ++row) {
            numbers.push_back(static_cast<std::int32_t>(row % classes));
        }
        if (value.name == "boxes") {
            bytes = random_boxes(value.shape, images, classes, seed);
        } else if (value.shape.rank() == 1) {  // labels or sample numbers
            bytes = bytes_of(numbers);
        } else if (value.dtype == tensor::DType::u8) {
            bytes = random_images<std::uint8_t>(
                value.shape, seed, [](CounterStream& random) { return random.next_u32(); });
        } else {
            ensure(value.dtype == tensor::DType::f32, "random images are u8 or f32, not {}",
                   name_of(*value.dtype));
            bytes = random_images<float>(value.shape, seed,
                                         [](CounterStream& random) { return random.normal(); });
        }
    }
    return inputs;
}

WholeStep::WholeStep(const Setup& setup)
    : graph_(models::make_model(setup.config, {.batch = setup.samples})),
      store_(graph_, setup.device, config::optimizer_states(setup.config.training.optimizer)),
      network_(setup.config.training.fusion
                   ? graph::fuse_for_device(graph_, setup.device, options_of(setup.precision))
                   : graph_,
               setup.device, store_, options_of(setup.precision)),
      log_({[this] { return clock_.seconds(); }}, setup.device),
      step_({setup.config, network_, setup.device, store_, setup.reducer, &log_}),
      batch_(random_inputs(graph_, setup.config.workload.classes, setup.config.run.seed)),
      samples_(setup.samples) {
    training::initialize(graph_, setup.config.run.seed, 0, store_);
    log_.set_communication_clock([this] { return step_.communication_seconds(); });
}

void WholeStep::upload() {
    for (const auto& [name, bytes] : batch_) network_.set_input(name, bytes);
}

double WholeStep::run() {
    const std::int64_t steps = step_.steps_between_reads();
    const Stopwatch watch;
    log_.begin();
    for (std::int64_t i = 0; i < steps; ++i) {
        log_.enter(training::Phase::input_wait);
        log_.enter(training::Phase::forward);
        upload();
        step_.run(kLearningRate);
        const bool is_last = i + 1 == steps;
        if (is_last) results_ = step_.read();
        log_.end_step({}, is_last);
    }
    const double seconds = watch.seconds();
    results_.samples = steps * samples_;
    return seconds / static_cast<double>(steps);
}

}  // namespace hpcai::speed
