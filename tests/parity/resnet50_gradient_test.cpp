// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "fingerprint.hpp"
#include "model.hpp"
#include "reference_file.hpp"
#include "support/largest_error.hpp"
#include "support/losses.hpp"

/// One forward and backward pass of the whole ResNet-50 compared with torchvision's in float64.
namespace hpcai::parity {
namespace {

/// Relative Euclidean distances.
struct Tolerance {
    double losses, logits, gradients;
};

/// The engine rounds values once per layer, and fp32 gradients are sums of up to 8 x 32 x 32
/// products. The tolerances are based on PyTorch's own distances from float64 (resnet50.json).
Tolerance tolerance_of(const Variant& variant) {
    if (variant.row.compute == tensor::DType::f32) {
        return variant.kind == Kind::open ? Tolerance{1e-6, 2e-6, 4e-5}
                                          : Tolerance{1e-6, 6e-6, 4e-2};
    }
    return variant.kind == Kind::open ? Tolerance{3e-3, 2e-2, 0.4} : Tolerance{6e-3, 6e-2, 0.9};
}

class ResNet50Gradient : public testing::TestWithParam<Variant> {};

TEST_P(ResNet50Gradient, IsTorchvisionsInDouble) {
    const Variant variant = GetParam();
    const std::int64_t side = variant.kind == Kind::open ? 64 : 75;
    Model model(variant, side);
    graph::Observer nobody;
    set_batch(model.network, 0, side);
    const auto loss_scale = static_cast<float>(loss_scale_of(variant));
    model.network.reset_step_scalars(loss_scale / kBatch);
    model.network.prepare(nobody);
    model.network.forward(nobody);
    model.network.backward(nobody);

    const ReferenceFile file(variant.stem() + ".safetensors");
    const Tolerance tolerance = tolerance_of(variant);
    const std::string of = fmt::format("{} {}", variant.title(), name_of(variant.kind));
    const std::string_view type = name_of(variant.row.compute);
    const std::vector<float> losses = graph::read_losses(*model.device, model.network);
    tests::LargestError losses_error(fmt::format("ResNet-50 {} losses, {}", of, type),
                                     tolerance.losses);
    losses_error.add(relative_distance({losses.begin(), losses.end()}, file.read("losses")));
    tests::LargestError logits_error(fmt::format("ResNet-50 {} logits, {}", of, type),
                                     tolerance.logits);
    std::vector<float> probabilities(static_cast<std::size_t>(kBatch * kClasses));
    model.network.read_output(probabilities);
    logits_error.add(relative_distance(centred_logits(probabilities), file.read("logits")));
    tests::LargestError error(fmt::format("ResNet-50 {} gradients, {}", of, type),
                              tolerance.gradients);
    std::vector<float> gradients = model.store.read(model.store.gradients());
    for (float& gradient : gradients) gradient /= loss_scale;
    for (std::size_t id = 0; id < model.graph.parameters().size(); ++id) {
        const std::string& name = model.graph.parameters()[id].name;
        const auto got = Fingerprint::of(model.part(gradients, id));
        error.add(
            got.distance(file.fingerprint("gradient/" + name)) / file.yardstick("gradient/", name),
            name);
    }
}

/// Returns every precision of both versions, and one gradient unfused and with other settings.
std::vector<Variant> variants() {
    std::vector<Variant> all;
    for (const std::string_view version : {"v1", "v1_5"}) {
        for (const device::DeviceRow& row : rows()) {
            for (const Kind kind : {Kind::open, Kind::ordinary}) {
                all.push_back({version, kind, row});
            }
            if (row.compute == tensor::DType::f32) {
                all.push_back({version, Kind::open, row, Fusion::none});
            }
        }
    }
    for (const device::DeviceRow& row : other_rows()) all.push_back({"v1_5", Kind::open, row});
    return all;
}

INSTANTIATE_TEST_SUITE_P(Of, ResNet50Gradient, testing::ValuesIn(variants()),
                         [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace hpcai::parity
