// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <hpcai/reference/naive_boxes.hpp>

#include "faster_rcnn_model.hpp"
#include "fingerprint.hpp"
#include "model.hpp"
#include "support/largest_error.hpp"
#include "support/losses.hpp"

/// The whole Faster R-CNN compared with torchvision's in float64: the values of a training step,
/// its losses and gradients, and the detections of inference.
namespace hpcai::parity {
namespace {

/// Rows of `columns` numbers; the first columns must be equal, the others have errors.
struct Columns {
    std::size_t count = 0;
    std::vector<std::size_t> exact;
};

class Rows {
public:
    Rows(const std::vector<float>& got, const std::vector<float>& want, const Columns& columns)
        : got_(got), want_(want), columns_(columns) {
        EXPECT_EQ(got.size(), want.size());
        if (got.size() != want.size()) got_ = std::vector<float>(want.size(), NAN);
        for (std::size_t at = 0; at < want.size(); at += columns.count) {
            for (const std::size_t column : columns.exact) {
                unequal_ += got_[at + column] != want_[at + column];
            }
        }
    }
    /// Returns the number of values that had to be equal but are not.
    int unequal() const { return unequal_; }
    /// Returns the largest difference in columns `first` to `last` of all rows.
    double error(std::size_t first, std::size_t last) const {
        double largest = 0;
        for (std::size_t at = 0; at < want_.size(); ++at) {
            const std::size_t column = at % columns_.count;
            if (column < first || column > last) continue;
            const double difference = std::abs(double{got_[at]} - want_[at]);
            if (!(difference <= largest)) largest = difference;
        }
        return largest;
    }

private:
    std::vector<float> got_, want_;
    Columns columns_;
    int unequal_ = 0;
};

constexpr std::size_t kAll = 100;  // more columns than exist

/// Returns the engine in fp32.
device::DeviceRow fp32_row() {
    for (const device::DeviceRow& row : rows()) {
        if (row.compute == tensor::DType::f32) return row;
    }
    throw std::runtime_error("no engine computes in fp32");
}

/// Returns values of a training step and their names in the reference.
std::map<std::string, std::string> values_of_step() {
    std::map<std::string, std::string> names{{"backbone.fpn.pool", "P6"},
                                             {"roi_align", "roi_align"},
                                             {"roi_heads.box_predictor.cls_score", "class_logits"},
                                             {"roi_heads.box_predictor.bbox_pred", "class_deltas"}};
    for (int level = 2; level <= 6; ++level) {
        const auto of_level = [&](std::string_view name) {
            return fmt::format("{}.P{}", name, level);
        };
        names[of_level("rpn.head.cls_logits") + ".bias"] = of_level("rpn_logits");
        names[of_level("rpn.head.bbox_pred") + ".bias"] = of_level("rpn_deltas");
        if (level == 6) continue;
        names[fmt::format("backbone.fpn.layer_blocks.{}.0.bias", level - 2)] =
            fmt::format("P{}", level);
    }
    return names;
}

/// Relative distances, and the largest difference of corners in pixels. torchvision's own fp32
/// differs from float64 by up to 6e-7 (losses), 1.3e-5 (values) and 4e-5 (gradients of weights).
struct DetectorTolerance {
    double losses, values, gradients, pixels;
};

/// A larger image has larger boxes and sums of more terms. If a fraction f of the ReLUs switches,
/// gradients differ by about sqrt(f). In fp32 f is up to 1e-6 and depends on the order of sums: the
/// CPU's order gives 1.3e-4, cuDNN's 5.6e-4.
DetectorTolerance tolerance_of(const DetectorVariant& variant) {
    if (variant.row.compute != tensor::DType::f32)
        return {.losses = 0.1};  // other regions are drawn
    const bool is_cpu = variant.row.name.starts_with("cpu_");
    if (variant.reference == "full") return {5e-5, 1e-4, is_cpu ? 4e-4 : 1e-3, 3e-3};
    return {1e-5, 5e-5, 2e-4, 5e-4};
}

class FasterRcnnStep : public testing::TestWithParam<DetectorVariant> {
protected:
    void compare_losses(const Detector& detector) const {
        const auto images = static_cast<std::size_t>(detector.options.batch);
        // (2, images, 2)
        const std::vector<float> losses = graph::read_losses(*detector.device, detector.network);
        std::vector<double> means(4);
        for (std::size_t i = 0; i < losses.size(); ++i) {
            means[i / images / 2 * 2 + i % 2] += losses[i] / static_cast<double>(images);
        }
        tests::LargestError error(label("losses"), tolerance_.losses);
        error.add(relative_distance(means, detector.reference.read("losses")));
    }

    void compare_choices(const Detector& detector, const ValueReader& values) const {
        const Rows anchors(values["anchor_targets"], detector.floats("anchor_targets"),
                           {6, {0, 1}});
        const Rows regions(values["roi_targets"], detector.floats("regions"), {9, {4}});
        const Rows proposals(values["proposals"], detector.floats("proposals"), {5, {}});
        tests::LargestError sampled(label("sampled anchors and classes of regions"), 0);
        sampled.add(anchors.unequal(), "anchors");
        sampled.add(regions.unequal(), "regions");
        tests::LargestError boxes(label("proposals and regions in pixels"), tolerance_.pixels);
        boxes.add(proposals.error(0, 3), "proposals");
        boxes.add(regions.error(0, 3), "regions");
        tests::LargestError scores(label("scores of proposals"), 5e-6);
        scores.add(proposals.error(4, 4));
        tests::LargestError targets(label("targets of deltas"), 1e-4);
        targets.add(anchors.error(2, kAll), "anchors");
        targets.add(regions.error(5, kAll), "regions");
    }

    void compare_values(const Detector& detector, const ValueReader& values) const {
        tests::LargestError error(label("values"), tolerance_.values);
        for (const auto& [ours, theirs] : values_of_step()) {
            const auto want = detector.reference.fingerprint("value/" + theirs);
            const auto got =
                Fingerprint::of(std::vector<double>(values[ours].begin(), values[ours].end()));
            error.add(got.distance(want) / want.length(), theirs);
        }
    }

    void compare_gradients(Detector& detector) const {
        tests::LargestError error(label("gradients"), tolerance_.gradients);
        const std::vector<float> gradients = detector.store.read(detector.store.gradients());
        for (std::size_t id = 0; id < detector.graph.parameters().size(); ++id) {
            const graph::Parameter& parameter = detector.graph.parameters()[id];
            if (!parameter.is_trained) continue;
            const std::string name = "gradient/" + parameter.name;
            const auto want = detector.reference.fingerprint(name);
            const bool is_shift = parameter.kind == graph::ParameterKind::norm_shift;
            const double yardstick = is_shift
                                         ? detector.reference.yardstick("gradient/", parameter.name)
                                         : want.length();
            const auto got = Fingerprint::of(detector.gradient(gradients, id));
            error.add(got.distance(want) / yardstick, parameter.name);
        }
    }

    const DetectorTolerance tolerance_ = tolerance_of(GetParam());

    static std::string label(std::string_view what) {
        return fmt::format("Faster R-CNN {} {}, {}", GetParam().title(), what,
                           name_of(GetParam().row.compute));
    }
};

TEST_P(FasterRcnnStep, IsTorchvisionsInDouble) {
    Detector detector(GetParam(), device::Mode::training);
    std::vector<std::string> names{"proposals", "anchor_targets", "roi_targets"};
    for (const auto& [ours, theirs] : values_of_step()) names.push_back(ours);
    ValueReader values(detector.network, *detector.device, names);
    graph::Observer nobody;
    detector.network.prepare(nobody);
    detector.network.forward(values);
    compare_losses(detector);
    if (GetParam().row.compute != tensor::DType::f32) return;
    detector.network.backward(nobody);
    compare_choices(detector, values);
    compare_values(detector, values);
    compare_gradients(detector);
}

/// Returns all cases in fp32, the small cases in every precision, and one with other settings.
std::vector<DetectorVariant> steps() {
    std::vector<DetectorVariant> all;
    for (const device::DeviceRow& row : rows()) {
        for (const std::string_view reference : {"batch_norm", "frozen", "full"}) {
            if (reference == "full" && row.compute != tensor::DType::f32) continue;
            all.push_back({reference, row});
        }
    }
    for (const device::DeviceRow& row : other_rows()) all.push_back({"batch_norm", row});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Of, FasterRcnnStep, testing::ValuesIn(steps()),
                         [](const auto& test) { return test.param.name(); });

class FasterRcnnInference : public testing::TestWithParam<DetectorVariant> {};

TEST_P(FasterRcnnInference, DetectsWhatTorchvisionDoesInDouble) {
    Detector detector(GetParam(), device::Mode::inference);
    ValueReader values(detector.network, *detector.device, {"proposals"});
    graph::Observer nobody;
    detector.network.prepare(nobody);
    detector.network.forward(values);
    const std::vector<float> want = detector.floats("detections");
    std::vector<float> got(want.size());
    detector.network.read_output(got);
    const Rows rows(got, want, {6, {5}});
    const Rows proposals(values["proposals"], detector.floats("inference_proposals"), {5, {}});
    const auto label = [](std::string_view what) {
        return fmt::format("Faster R-CNN {} {}", GetParam().title(), what);
    };
    tests::LargestError classes(label("classes of detections"), 0);
    classes.add(rows.unequal());
    tests::LargestError boxes(label("detections in pixels"), tolerance_of(GetParam()).pixels);
    boxes.add(proposals.error(0, 3), "proposals");
    boxes.add(rows.error(0, 3), "detections");
    tests::LargestError scores(label("scores of detections"), 6e-5);
    scores.add(rows.error(4, 4));
}

std::vector<DetectorVariant> inferences() {
    std::vector<DetectorVariant> all;
    for (const std::string_view reference : {"batch_norm", "frozen", "full"}) {
        all.push_back({reference, fp32_row()});
    }
    return all;
}

INSTANTIATE_TEST_SUITE_P(Of, FasterRcnnInference, testing::ValuesIn(inferences()),
                         [](const auto& test) { return test.param.name(); });

class FasterRcnnAnchors : public testing::TestWithParam<std::string_view> {};

TEST_P(FasterRcnnAnchors, AreTorchvisionsWithTheSameNumbers) {
    const ReferenceFile file("faster_rcnn_" + std::string(GetParam()) + ".safetensors");
    std::vector<double> corners;
    for (const auto& anchor : naive::placed(models::make_anchors(detector_options(GetParam())))) {
        for (const double corner : anchor.box.numbers()) corners.push_back(corner);
    }
    tests::LargestError error(fmt::format("Faster R-CNN anchors, {}", GetParam()), 1e-7);
    const Fingerprint want = file.fingerprint("anchors");
    error.add(Fingerprint::of(corners).distance(want) / want.length());
}

/// All positive and negative anchors are drawn, so none is omitted.
TEST_P(FasterRcnnAnchors, MatchTheBoxesAsTorchvisionsDo) {
    const models::FasterRcnn options = detector_options(GetParam());
    const ops::Anchors anchors = models::make_anchors(options);
    const std::int64_t samples = 2 * anchors.count();
    graph::Graph graph;
    const tensor::Shape shape{options.batch, options.max_boxes, 5};
    const auto boxes = graph.add_input("boxes", shape, tensor::DType::f32);
    const auto keys = graph.add_input("keys", {options.batch}, tensor::DType::s32);
    graph.add_node("targets", ops::AnchorTargets{shape, anchors, samples}, {boxes, keys});
    const auto device = fp32_row().make();
    graph::ParameterStore store(graph, *device);
    graph::Network network(graph, *device, store, {device::Mode::inference});

    const ReferenceFile file("faster_rcnn_" + std::string(GetParam()) + ".safetensors");
    const auto stored = file.read("boxes");
    const std::vector<float> fed(stored.begin(), stored.end());
    const std::vector<std::int32_t> numbers(static_cast<std::size_t>(options.batch));
    network.set_input("boxes", std::as_bytes(std::span(fed)));
    network.set_input("keys", std::as_bytes(std::span(numbers)));
    graph::Observer nobody;
    network.forward(nobody);
    std::vector<float> rows(static_cast<std::size_t>(options.batch * samples * 6));
    network.read_output(rows);
    std::vector<double> labels(static_cast<std::size_t>(options.batch * anchors.count()), -1);
    for (std::size_t row = 0; row < rows.size() / 6; ++row) {
        if (rows[6 * row] < 0) continue;
        const std::size_t image = row / static_cast<std::size_t>(samples);
        const auto anchor = static_cast<std::size_t>(rows[6 * row]);
        labels[image * static_cast<std::size_t>(anchors.count()) + anchor] = rows[6 * row + 1];
    }
    tests::LargestError error(fmt::format("Faster R-CNN matches of anchors, {}", GetParam()), 1e-7);
    const Fingerprint want = file.fingerprint("anchor_labels");
    error.add(Fingerprint::of(labels).distance(want) / want.length());
}

INSTANTIATE_TEST_SUITE_P(Of, FasterRcnnAnchors, testing::Values("batch_norm", "frozen", "full"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace hpcai::parity
