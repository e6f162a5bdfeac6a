// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/device/cpu_device.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/graph/network.hpp>

#include "device/device_rows.hpp"
#include "formula.hpp"
#include "models/networks.hpp"

namespace hpcai::parity {

/// Returns the engines that run the whole model, one for each precision: this machine's CPU or, if
/// device_rows() are those of a GPU, the GPU.
inline std::vector<device::DeviceRow> rows() {
    std::vector<device::DeviceRow> all;
    for (const device::DeviceRow& row : device::device_rows()) {
        const bool is_known =
            std::ranges::any_of(all, [&](const auto& one) { return one.compute == row.compute; });
        if (row.tf32 || is_known) continue;
        const bool is_cpu = row.name.starts_with("cpu_");
        all.push_back(is_cpu ? device::cpu_row(row.compute, {.threads = 2}) : row);
    }
    return all;
}

/// Returns other ways to compute in fp32.
inline std::vector<device::DeviceRow> other_rows() {
    if (!rows().front().name.starts_with("cpu_")) return {};
    const auto layout = device::CpuLayout::channels_last;
    return {device::cpu_row(tensor::DType::f32, {.threads = 2, .layout = layout}),
            device::cpu_row(tensor::DType::f32, {.threads = 3, .deterministic = true})};
}

enum class Fusion { none, device_independent, for_device };

/// A whole ResNet-50 with weights of the formula.
struct Variant {
    std::string_view version;  // "v1", "v1_5"
    Kind kind = Kind::open;
    device::DeviceRow row;
    Fusion fusion = Fusion::device_independent;
    std::int64_t batch = kBatch;

    /// "v1.5": for display.
    std::string title() const { return version == "v1" ? "v1" : "v1.5"; }
    /// Returns the stem of the file with the references.
    std::string stem() const {
        return "resnet50_" + std::string(version) + "_" + std::string(name_of(kind));
    }
    /// Returns the name of a test.
    std::string name() const {
        return std::string(version) + "_" + std::string(name_of(kind)) + "_" + row.name +
               (fusion == Fusion::none ? "_unfused" : "");
    }
};

inline void PrintTo(const Variant& variant, std::ostream* stream) {
    *stream << variant.name();
}

inline constexpr double kSmoothing = 0.1;

/// Returns a loss scale with which neither small gradients vanish nor large ones overflow.
inline int loss_scale_of(const Variant& variant) {
    return variant.row.compute == tensor::DType::f16 ? 1024 : 1;
}

inline graph::Graph make_graph(const Variant& variant, std::int64_t side, device::Device& device) {
    const graph::Graph graph =
        models::make_resnet50({.batch = variant.batch,
                               .image_size = side,
                               .classes = kClasses,
                               .label_smoothing = kSmoothing,
                               .backbone = {.stride_on_3x3 = variant.version != "v1"}});
    if (variant.fusion == Fusion::none) return graph;
    if (variant.fusion == Fusion::device_independent) return graph::fuse(graph);
    return graph::fuse_for_device(graph, device, {device::Mode::training, variant.row.compute});
}

/// The position of torchvision's element i, (K, C, R, S), in the engine's order, (K, R, S, C).
class TorchOrder {
public:
    explicit TorchOrder(const tensor::Shape& shape) : shape_(shape) {}
    std::size_t operator()(std::size_t i) const {
        if (shape_.rank() != 4) return i;
        const auto window = static_cast<std::size_t>(shape_[1] * shape_[2]);
        const auto channels = static_cast<std::size_t>(shape_[3]);
        const std::size_t tap = i % window, c = i / window % channels, k = i / window / channels;
        return (k * window + tap) * channels + c;
    }
    std::vector<std::int64_t> extents() const {
        std::vector<std::int64_t> all(shape_.begin(), shape_.end());
        if (all.size() == 4) all = {all[0], all[3], all[1], all[2]};
        return all;
    }

private:
    tensor::Shape shape_;
};

/// The network on its device, its state in torchvision's order.
class Model {
public:
    Model(const Variant& variant, std::int64_t side)
        : device(variant.row.make()),
          graph(make_graph(variant, side, *device)),
          store(graph, *device),
          network(graph, *device, store, {device::Mode::training, variant.row.compute}) {
        for (std::size_t id = 0; id < graph.parameters().size(); ++id) {
            const graph::Parameter& described = graph.parameters()[id];
            const TorchOrder order(described.shape);
            const auto values = parameter(described.name, order.extents(), variant.kind);
            const auto to = store.parameter(static_cast<graph::ParameterId>(id));
            std::vector<float> ordered(to.size());
            for (std::size_t i = 0; i < to.size(); ++i) ordered[order(i)] = values[i];
            store.write(ordered, to);
        }
    }

    /// Returns the part of a flat host buffer, laid out like the store's, that belongs to parameter
    /// `id`.
    std::vector<double> part(std::span<const float> flat, std::size_t id) const {
        const graph::Range range = store.ranges()[id];
        const TorchOrder order(graph.parameters()[id].shape);
        std::vector<double> values(range.end - range.begin);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = flat[range.begin + order(i)];
        return values;
    }

    std::unique_ptr<device::Device> device;
    graph::Graph graph;
    graph::ParameterStore store;
    graph::Network network;
};

inline void set_batch(graph::Network& network, int number, std::int64_t side) {
    const std::int64_t batch = network.graph().value(network.graph().find("images")).shape[0];
    const auto pixels = pictures(number, side, batch);
    const auto classes = labels(number, batch);
    network.set_input("images", std::as_bytes(std::span(pixels)));
    network.set_input("labels", std::as_bytes(std::span(classes)));
}

/// Returns the logits of a softmax (N, kClasses), without the constant of each row, which softmax
/// removes.
inline std::vector<double> centred_logits(std::span<const float> probabilities) {
    std::vector<double> logits(probabilities.begin(), probabilities.end());
    for (auto row = logits.begin(); row != logits.end(); row += kClasses) {
        for (auto value = row; value != row + kClasses; ++value) *value = std::log(*value);
        const double mean = std::accumulate(row, row + kClasses, 0.0) / kClasses;
        for (auto value = row; value != row + kClasses; ++value) *value -= mean;
    }
    return logits;
}

/// Returns the length of the difference divided by the length of `want`.
inline double relative_distance(const std::vector<double>& got, const std::vector<double>& want) {
    if (got.size() != want.size()) return INFINITY;
    double distance = 0, length = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        distance += (got[i] - want[i]) * (got[i] - want[i]);
        length += want[i] * want[i];
    }
    return std::sqrt(distance / length);
}

}  // namespace hpcai::parity
