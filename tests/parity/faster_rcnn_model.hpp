// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hpcai/graph/network.hpp>
#include <hpcai/reference/load_values.hpp>

#include "device/device_rows.hpp"
#include "faster_rcnn_formula.hpp"
#include "models/networks.hpp"
#include "reference_file.hpp"

namespace hpcai::parity {

/// One of the script's cases, on one engine.
struct DetectorVariant {
    std::string_view reference;  // "batch_norm", "frozen", "full"
    device::DeviceRow row;

    std::string file() const { return "faster_rcnn_" + std::string(reference) + ".safetensors"; }
    std::string name() const { return std::string(reference) + "_" + row.name; }
    /// Returns the title for display.
    std::string title() const {
        static const std::map<std::string_view, std::string> kTitles{
            {"batch_norm", "with batch norm"},
            {"frozen", "with frozen norm"},
            {"full", "768x1152"}};
        return kTitles.at(reference);
    }
};

inline void PrintTo(const DetectorVariant& variant, std::ostream* stream) {
    *stream << variant.name();
}

/// Returns an entry of CASES in the script.
inline models::FasterRcnn detector_options(std::string_view reference) {
    models::FasterRcnn options;
    options.input.dtype = tensor::DType::f32;
    options.detector.score_threshold = 0.05;
    if (reference == "full") {
        options.detector.training_proposals = 300;
        options.detector.inference_proposals = 100;
        options.detector.region_samples = 128;
        return options;
    }
    options.batch = 2;
    options.image_height = 128;
    options.image_width = 192;
    options.detector.anchor_sizes = {8, 16, 32, 64, 128};
    options.detector.region_samples = 64;
    options.detector.training_proposals = 200;
    options.detector.inference_proposals = 100;
    options.detections = 50;
    if (reference == "frozen") {
        options.backbone.norm.kind = models::Norm::frozen_batch;
        options.backbone.trained_stages = 3;
    }
    return options;
}

/// A parameter's elements in torchvision's order: the position of element i in the engine, and the
/// extents.
class DetectorOrder {
public:
    explicit DetectorOrder(const graph::Parameter& parameter)
        : extents_(parameter.shape.begin(), parameter.shape.end()) {
        if (extents_.size() == 4) {
            pixels_ = static_cast<std::size_t>(extents_[1] * extents_[2]);
            extents_ = {extents_[0], extents_[3], extents_[1], extents_[2]};
        } else if (extents_.size() == 2) {
            pixels_ = static_cast<std::size_t>(parameter.pixels);
        }
        channels_ = static_cast<std::size_t>(parameter.shape.elements() / extents_[0]) / pixels_;
    }
    std::size_t operator()(std::size_t i) const {
        const std::size_t pixel = i % pixels_, c = i / pixels_ % channels_;
        return (i / pixels_ / channels_ * pixels_ + pixel) * channels_ + c;
    }
    const std::vector<std::int64_t>& extents() const { return extents_; }

private:
    std::vector<std::int64_t> extents_;
    std::size_t pixels_ = 1, channels_ = 1;
};

/// Sets weights by the formula, and running statistics from the file.
inline void set_detector_state(const graph::Graph& graph, graph::ParameterStore& store) {
    for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
        const graph::Parameter& described = graph.parameters()[id];
        const DetectorOrder order(described);
        const auto values = detector_parameter(described.name, order.extents());
        std::vector<float> ordered(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) ordered[order(i)] = values[i];
        store.write(ordered, store.parameter(static_cast<graph::ParameterId>(id)));
    }
    const ReferenceFile file("faster_rcnn_statistics.safetensors");
    for (std::size_t index = 0; index < graph.statistics().size(); ++index) {
        const std::string& name = graph.statistics()[index].name;
        const auto number = static_cast<std::int32_t>(index);
        const auto mean = file.read(name + ".running_mean");
        const auto variance = file.read(name + ".running_var");
        store.write(std::vector<float>(mean.begin(), mean.end()), store.running_mean(number));
        store.write(std::vector<float>(variance.begin(), variance.end()),
                    store.running_variance(number));
    }
}

/// Copies named values to the host after their computation, in fp32 with channels last.
class ValueReader final : public graph::Observer {
public:
    ValueReader(const graph::Network& network, device::Device& device,
                const std::vector<std::string>& names)
        : network_(network), device_(device) {
        for (const std::string& name : names) values_[name];
    }

    void after(const graph::KernelCall& call) override {
        const auto found = values_.find(call.name);
        if (call.pass != ops::Pass::forward || found == values_.end()) return;
        const graph::Graph& graph = network_.graph();
        const graph::Value& value = graph.value(graph.find(call.name));
        std::vector<float>& to = found->second;
        to.resize(static_cast<std::size_t>(value.shape.elements()));
        device_.synchronize();
        const std::span<const std::byte> from = network_.value(call.name);
        if (value.shape.rank() == 3) {
            device_.download(std::as_writable_bytes(std::span(to)), from.data());
        } else {
            load_channels_last(device_, to, value.shape, value.dtype.value_or(network_.compute()),
                               from.data());
        }
    }
    const std::vector<float>& operator[](const std::string& name) const { return values_.at(name); }

private:
    const graph::Network& network_;
    device::Device& device_;
    std::map<std::string, std::vector<float>> values_;
};

/// A detector on its device, with the batch of its case.
class Detector {
public:
    Detector(const DetectorVariant& variant, device::Mode mode)
        : reference(variant.file()),
          options(detector_options(variant.reference)),
          device(variant.row.make()),
          graph(graph::fuse(mode == device::Mode::training
                                ? models::make_faster_rcnn(options)
                                : models::make_faster_rcnn_inference(options))),
          store(graph, *device),
          network(graph, *device, store, {mode, variant.row.compute}) {
        set_detector_state(graph, store);
        const auto number = static_cast<int>(reference.read("number").front());
        const auto pixels =
            detector_images(number, options.batch, options.image_height, options.image_width);
        network.set_input("images", std::as_bytes(std::span(pixels)));
        if (mode == device::Mode::inference) return;
        const auto boxes = floats("boxes");
        const auto stored_keys = reference.read("keys");
        const std::vector<std::int32_t> keys(stored_keys.begin(), stored_keys.end());
        network.set_input(models::kBoxesInput, std::as_bytes(std::span(boxes)));
        network.set_input(models::kKeysInput, std::as_bytes(std::span(keys)));
        network.reset_step_scalars(1 / static_cast<float>(options.batch));
    }

    std::vector<float> floats(const std::string& name) const {
        const auto values = reference.read(name);
        return {values.begin(), values.end()};
    }
    /// Returns the gradient of parameter `id` in torchvision's order.
    std::vector<double> gradient(std::span<const float> flat, std::size_t id) const {
        const graph::Range range = store.ranges()[id];
        const DetectorOrder order(graph.parameters()[id]);
        std::vector<double> values(range.end - range.begin);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = flat[range.begin + order(i)];
        return values;
    }

    ReferenceFile reference;
    models::FasterRcnn options;
    std::unique_ptr<device::Device> device;
    graph::Graph graph;
    graph::ParameterStore store;
    graph::Network network;
};

}  // namespace hpcai::parity
