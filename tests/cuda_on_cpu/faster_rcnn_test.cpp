// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include <hpcai/graph/fuse_for_device.hpp>

#include "device/device_rows.hpp"
#include "models/networks.hpp"
#include "support/network_runner.hpp"

/// Training steps and detections of a small Faster R-CNN, against the CPU engine.
namespace hpcai::models {
namespace {

using graph::Graph;
using graph::NetworkRunner;

FasterRcnn small_detector() {
    return {.batch = 2,
            .image_height = 64,
            .image_width = 96,
            .channels = 3,
            .classes = 5,
            .max_boxes = 4,
            .backbone = {.width = 8, .blocks = {1, 1, 1, 1}, .zero_gamma = false},
            .detector = {.pyramid_channels = 16,
                         .head_features = 32,
                         .anchor_sizes = {8, 16, 24, 32, 48},
                         .anchor_samples = 32,
                         .region_samples = 24,
                         .training_proposals = 60,
                         .inference_proposals = 40,
                         .score_threshold = 0.05},
            .detections = 20};
}

/// Returns two boxes per image.
std::vector<float> boxes(const FasterRcnn& options) {
    const std::vector<std::array<float, 5>> all{
        {10, 8, 40, 30, 1}, {50, 20, 90, 60, 4}, {0, 0, 20, 25, 2}, {30, 30, 62, 64, 3}};
    std::vector<float> rows(static_cast<std::size_t>(options.batch * options.max_boxes * 5));
    for (std::size_t i = 0; i < all.size(); ++i) {
        std::copy(all[i].begin(), all[i].end(),
                  rows.begin() + static_cast<std::ptrdiff_t>((i / 2 * 4 + i % 2) * 5));
    }
    return rows;
}

struct Step {
    std::vector<float> losses, gradients;
};

void set_inputs(graph::Network& network, const FasterRcnn& options) {
    const Graph& graph = network.graph();
    naive::Random random(tensor::DType::f32, 70);
    const auto images = random.below(graph.value(graph.find("images")).shape, 256);
    const std::vector<std::uint8_t> pixels(images.values.begin(), images.values.end());
    network.set_input("images", std::as_bytes(std::span(pixels)));
    if (!network.has_input(kBoxesInput)) return;
    const std::vector<float> rows = boxes(options);
    const std::vector<std::int32_t> keys{12345, -678};
    network.set_input(kBoxesInput, std::as_bytes(std::span(rows)));
    network.set_input(kKeysInput, std::as_bytes(std::span(keys)));
}

/// Runs a step without an update. Gradients start as NaN.
Step step_of(NetworkRunner& runner, const FasterRcnn& options, bool recorded = false) {
    runner.set_parameters(graph::random_parameters(runner.network.graph()));
    const auto gradients = runner.store.gradients();
    runner.store.write(std::vector<float>(gradients.size(), NAN), gradients);
    set_inputs(runner.network, options);
    runner.network.reset_step_scalars(4);
    const auto enqueue = [&] {
        graph::Observer nobody;
        runner.network.prepare(nobody);
        runner.network.forward(nobody);
        runner.network.backward(nobody);
    };
    if (recorded) {
        runner.device->record(enqueue)->run();
    } else {
        enqueue();
    }
    Step step;
    step.losses = read_losses(*runner.device, runner.network);
    for (std::size_t id = 0; id < runner.store.ranges().size(); ++id) {
        const auto from = runner.store.gradient(static_cast<graph::ParameterId>(id));
        const std::vector<float> some = runner.store.read(from);
        step.gradients.insert(step.gradients.end(), some.begin(), some.end());
    }
    return step;
}

std::vector<double> widened(const std::vector<float>& numbers) {
    return {numbers.begin(), numbers.end()};
}

TEST(FasterRcnnOnTheStandIn, TakesTheStepOfTheCpu) {
    const FasterRcnn options = small_detector();
    const Graph graph = graph::fuse(make_faster_rcnn(options));
    NetworkRunner cpu(graph);
    const Step want = step_of(cpu, options);
    for (const float loss : want.losses) EXPECT_GT(loss, 0);
    for (const device::DeviceRow& row : device::device_rows()) {
        if (row.compute != tensor::DType::f32 || row.tf32) continue;
        NetworkRunner gpu(graph, row.make(), {device::Mode::training, row.compute, row.tf32});
        const Step got = step_of(gpu, options);
        EXPECT_LT(graph::relative_distance(widened(got.losses), widened(want.losses)), 1e-5);
        EXPECT_LT(graph::relative_distance(widened(got.gradients), widened(want.gradients)), 1e-4);
        EXPECT_EQ(step_of(gpu, options, true).gradients, got.gradients) << "recorded";
    }
}

TEST(FasterRcnnOnTheStandIn, DetectsWhatTheCpuDetects) {
    const FasterRcnn options = small_detector();
    const Graph graph = make_faster_rcnn_inference(options);
    const auto detect = [&](NetworkRunner& runner) {
        runner.set_parameters(graph::random_parameters(graph));
        set_inputs(runner.network, options);
        graph::Observer nobody;
        runner.network.prepare(nobody);
        runner.network.forward(nobody);
        std::vector<float> rows(static_cast<std::size_t>(options.batch * options.detections * 6));
        runner.network.read_output(rows);
        return rows;
    };
    NetworkRunner cpu(graph, device::make_cpu_device({}), {device::Mode::inference});
    const std::vector<float> want = detect(cpu);
    EXPECT_GT(*std::max_element(want.begin(), want.end()), 0) << "nothing is detected";
    for (const device::DeviceRow& row : device::device_rows()) {
        if (row.compute != tensor::DType::f32 || row.tf32) continue;
        NetworkRunner gpu(graph, row.make(), {device::Mode::inference, row.compute, row.tf32});
        EXPECT_LT(graph::relative_distance(widened(detect(gpu)), widened(want)), 1e-4);
    }
}

}  // namespace
}  // namespace hpcai::models
