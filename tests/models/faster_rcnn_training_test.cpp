// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/network.hpp>

#include "models/networks.hpp"
#include "support/losses.hpp"
#include "support/optimizer_steps.hpp"

namespace hpcai::models {
namespace {

constexpr std::int64_t kHeight = 64, kWidth = 96;

FasterRcnn tiny(Norm norm) {
    FasterRcnn options;
    options.batch = 2;
    options.image_height = kHeight;
    options.image_width = kWidth;
    options.channels = 4;
    options.classes = 3;
    options.max_boxes = 4;
    options.input.dtype = tensor::DType::f32;
    options.backbone = {.width = 32, .blocks = {1, 1, 1, 1}, .zero_gamma = false};
    options.backbone.norm.kind = norm;
    options.detector.pyramid_channels = 16;
    options.detector.head_features = 32;
    options.detector.anchor_sizes = {8, 16, 32, 48, 64};
    options.detector.anchor_samples = 64;
    options.detector.region_samples = 32;
    options.detector.training_proposals = 100;
    options.detector.inference_proposals = 50;
    options.detector.score_threshold = 0.05;
    return options;
}

/// Bright rectangles on a dark background; the channel shows the class.
struct Scene {
    std::vector<float> images, boxes;
    std::vector<std::int32_t> keys;

    explicit Scene(const FasterRcnn& options)
        : images(static_cast<std::size_t>(options.batch * kHeight * kWidth * options.channels)),
          boxes(static_cast<std::size_t>(options.batch * options.max_boxes * 5)) {
        CounterStream random(5, RandomPurpose::test);
        for (float& value : images) value = static_cast<float>(0.1 * random.normal());
        for (std::int64_t image = 0; image < options.batch; ++image) {
            for (std::int64_t row = 0; row < 2; ++row) {
                const auto width = 12 + random.below(24), height = 12 + random.below(24);
                const auto left = random.below(static_cast<std::uint32_t>(kWidth) - width);
                const auto top = random.below(static_cast<std::uint32_t>(kHeight) - height);
                const auto category = 1 + random.below(2);
                float* box = boxes.data() + (image * options.max_boxes + row) * 5;
                box[0] = static_cast<float>(left);
                box[1] = static_cast<float>(top);
                box[2] = static_cast<float>(left + width);
                box[3] = static_cast<float>(top + height);
                box[4] = static_cast<float>(category);
                for (std::int64_t y = top; y < top + height; ++y) {
                    for (std::int64_t x = left; x < left + width; ++x) {
                        const std::int64_t pixel = (image * kHeight + y) * kWidth + x;
                        images[static_cast<std::size_t>(pixel * options.channels + category)] += 2;
                    }
                }
            }
            keys.push_back(static_cast<std::int32_t>(random.next_u32()));
        }
    }

    void feed(graph::Network& network, std::int32_t draw = 0) const {
        std::vector<std::int32_t> drawn = keys;
        for (std::int32_t& key : drawn) key += draw;
        network.set_input("images", std::as_bytes(std::span(images)));
        if (!network.has_input(kBoxesInput)) return;
        network.set_input(kBoxesInput, std::as_bytes(std::span(boxes)));
        network.set_input(kKeysInput, std::as_bytes(std::span(drawn)));
    }
};

/// A detector on the CPU, with the same weights for every form of its graph.
class Detector {
public:
    Detector(const FasterRcnn& options, bool fuses)
        : device_(device::make_cpu_device({.threads = 1})),
          graph_(make_faster_rcnn(options)),
          store_(graph_, *device_),
          network_(fuses ? graph::fuse(graph_) : graph_, *device_, store_, {}) {
        for (std::size_t id = 0; id < graph_.parameters().size(); ++id) {
            const graph::Parameter& parameter = graph_.parameters()[id];
            CounterStream random(3, RandomPurpose::test, static_cast<std::uint32_t>(id));
            const std::span<float> place = store_.parameter(static_cast<graph::ParameterId>(id));
            const auto inputs =
                static_cast<double>(parameter.shape.elements() / parameter.shape[0]);
            const bool is_matrix = parameter.shape.rank() > 1;
            const double mean = parameter.kind == graph::ParameterKind::norm_scale ? 1 : 0;
            std::vector<float> values(place.size());
            for (float& value : values) {
                const double deviation = is_matrix ? std::sqrt(1 / inputs) : 0.01;
                value = static_cast<float>(mean + deviation * random.normal());
            }
            store_.write(values, place);
        }
    }

    double loss() const {
        const std::vector<float> losses = graph::read_losses(*device_, network_);
        return std::accumulate(losses.begin(), losses.end(), 0.0);
    }
    void run(const Scene& scene, std::int32_t draw = 0) {
        graph::Observer nobody;
        scene.feed(network_, draw);
        network_.reset_step_scalars(0.5f);
        network_.prepare(nobody);
        network_.forward(nobody);
        network_.backward(nobody);
    }
    std::vector<float> gradients() { return store_.read(store_.gradients()); }

    graph::Network& network() { return network_; }
    graph::ParameterStore& store() { return store_; }
    device::Device& device() { return *device_; }

private:
    std::unique_ptr<device::Device> device_;
    graph::Graph graph_;
    graph::ParameterStore store_;
    graph::Network network_;
};

double relative_distance(const std::vector<float>& got, const std::vector<float>& want) {
    double distance = 0, length = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        distance += (got[i] - want[i]) * (got[i] - want[i]);
        length += want[i] * want[i];
    }
    return std::sqrt(distance / length);
}

TEST(FasterRcnnTraining, HasTheSameGradientsWithFusedOperations) {
    for (const Norm norm : {Norm::batch, Norm::group, Norm::frozen_batch}) {
        const FasterRcnn options = tiny(norm);
        const Scene scene(options);
        Detector fused(options, true), unfused(options, false);
        fused.run(scene);
        unfused.run(scene);
        EXPECT_LT(fused.network().graph().nodes().size(), unfused.network().graph().nodes().size());
        EXPECT_NEAR(fused.loss(), unfused.loss(), 1e-4);
        EXPECT_LT(relative_distance(fused.gradients(), unfused.gradients()), 1e-3)
            << static_cast<int>(norm);
    }
}

TEST(FasterRcnnTraining, FindsWhatItWasTrainedOn) {
    const FasterRcnn options = tiny(Norm::group);
    const Scene scene(options);
    Detector detector(options, true);
    device::OptimizerSteps steps(detector.device(), {device::Sgd{0.9f}},
                                 {detector.store().parameters(),
                                  detector.store().gradients(),
                                  {detector.store().state(0)},
                                  nullptr});
    detector.run(scene);
    const double before = detector.loss();
    for (std::int32_t step = 0; step < 150; ++step) {
        detector.run(scene, step);
        steps.step(0.003);
    }
    EXPECT_LT(detector.loss(), before / 3);

    const graph::Graph graph = make_faster_rcnn_inference(options);
    graph::Network inference(graph, detector.device(), detector.store(), {device::Mode::inference});
    graph::Observer nobody;
    scene.feed(inference);
    inference.prepare(nobody);
    inference.forward(nobody);
    std::vector<float> found(static_cast<std::size_t>(options.batch * options.detections * 6));
    inference.read_output(found);
    for (std::int64_t image = 0; image < options.batch; ++image) {
        const float* best = found.data() + image * options.detections * 6;
        const float* boxes = scene.boxes.data() + image * options.max_boxes * 5;
        EXPECT_GT(best[4], 0.5f) << "image " << image;
        const bool is_right = std::any_of(boxes, boxes + 10, [&](const float& number) {
            const auto offset = (&number - boxes) % 5;
            const float* box = &number;
            return offset == 0 && box[4] == best[5] && std::abs(box[0] - best[0]) < 5 &&
                   std::abs(box[1] - best[1]) < 5 && std::abs(box[2] - best[2]) < 5 &&
                   std::abs(box[3] - best[3]) < 5;
        });
        EXPECT_TRUE(is_right) << "image " << image << ": " << best[0] << " " << best[1] << " "
                              << best[2] << " " << best[3] << " class " << best[5];
    }
}

TEST(FasterRcnnTraining, HasAFiniteLossWithoutABox) {
    const FasterRcnn options = tiny(Norm::batch);
    Scene scene(options);
    std::fill(scene.boxes.begin(), scene.boxes.end(), 0.0f);
    Detector detector(options, true);
    detector.run(scene);
    const auto losses = graph::read_losses(detector.device(), detector.network());
    for (const std::size_t box_loss : {1U, 3U, 5U, 7U}) EXPECT_EQ(losses[box_loss], 0.0f);
    EXPECT_GT(detector.loss(), 0);
    for (const float gradient : detector.gradients()) ASSERT_TRUE(std::isfinite(gradient));
}

TEST(FasterRcnnTraining, ShowsANumberThatIsNotFiniteInItsGradients) {
    const FasterRcnn options = tiny(Norm::batch);
    Scene scene(options);
    scene.images.front() = NAN;
    Detector detector(options, true);
    detector.run(scene);
    const std::vector<float> gradients = detector.gradients();
    EXPECT_TRUE(std::any_of(gradients.begin(), gradients.end(),
                            [](float gradient) { return !std::isfinite(gradient); }));
}

}  // namespace
}  // namespace hpcai::models
