// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "device/device_rows.hpp"
#include "graph/graphs.hpp"
#include "support/network_runner.hpp"

/// Whole networks on every device.
namespace hpcai::graph {
namespace {

using device::DeviceRow;

class NetworkOn : public testing::TestWithParam<DeviceRow> {
protected:
    NetworkRunner runner(const Graph& graph) const { return runner(graph, GetParam().make()); }
    NetworkRunner repeatable_runner(const Graph& graph) const {
        return runner(graph, GetParam().make_repeatable());
    }
    /// The tolerance of results by their length: about ten roundings in the compute type. The
    /// reference does not drop the bits of factors that tf32 drops.
    double tolerance() const {
        if (GetParam().tf32) return 0.02;
        if (GetParam().compute == tensor::DType::f32) return 1e-5;
        return GetParam().compute == tensor::DType::f16 ? 3e-3 : 0.02;
    }

private:
    static NetworkRunner runner(const Graph& graph, std::unique_ptr<device::Device> device) {
        const DeviceRow& row = GetParam();
        return {graph, std::move(device), {device::Mode::training, row.compute, row.tf32}};
    }
};

TEST_P(NetworkOn, AgreesWithTheNaiveNetworkUnfusedAndFused) {
    const Graph graph = every_operation();
    const Inputs inputs = random_inputs(graph);
    const Tensors parameters = random_parameters(graph);
    for (const Graph& variant : {graph, fuse(graph)}) {
        naive::Network reference(variant, GetParam().compute);
        const auto want = reference.run(inputs, parameters, 0.25);
        NetworkRunner runner = this->runner(variant);
        runner.set_parameters(parameters);
        expect_same_step(runner.step(inputs, 0.25f), want, graph, tolerance());
    }
}

TEST_P(NetworkOn, DoesNotDependOnWhatItRanBefore) {
    const Graph graph = fuse(every_operation());
    NetworkRunner runner = repeatable_runner(graph);
    const Tensors parameters = random_parameters(graph);
    runner.set_parameters(parameters);
    const auto first = runner.step(random_inputs(graph));
    runner.step(random_inputs(graph, 99));
    const auto again = runner.step(random_inputs(graph));
    EXPECT_EQ(again.losses, first.losses);
    for (std::size_t id = 0; id < parameters.size(); ++id) {
        EXPECT_EQ(again.gradients[id].values, first.gradients[id].values);
    }
}

/// The parameters after `steps` training steps with changing inputs and learning rate, and the
/// losses. The first step is never captured, as libraries may allocate in it.
std::vector<float> trained(NetworkRunner runner, const Graph& graph, bool recorded) {
    Observer nobody;
    ParameterStore& store = runner.store;
    device::Device& device = *runner.device;
    runner.set_parameters(random_parameters(graph));
    runner.network.reset_step_scalars(4);
    device::StepScalars* numbers = runner.network.step_scalars();
    const auto update =
        device.build({device::Sgd{0.9f}, 1e-4f, {{0, store.parameters().size(), true}}},
                     {store.parameters(), store.gradients(), {store.state(0)}, numbers});
    const auto enqueue = [&] {
        runner.network.prepare(nobody);
        runner.network.forward(nobody);
        runner.network.backward(nobody);
        device.check_finite(store.gradients(), numbers);
        device.add_losses(runner.network.losses().front(), numbers);
        update->run();
        device.finish_step({.dynamic = true, .good_steps_to_double = 2, .loss_weight = 0.25f},
                           numbers);
    };
    std::unique_ptr<device::Recording> recording;
    for (std::uint32_t step = 0; step < 5; ++step) {
        NetworkRunner::set_inputs(runner.network, random_inputs(graph, 30 + step));
        const float learning_rate = 0.01f * static_cast<float>(step + 1);
        device.enqueue_upload(&numbers->learning_rate, std::as_bytes(std::span(&learning_rate, 1)));
        if (recorded && step == 1) recording = device.record(enqueue);
        recording != nullptr ? recording->run() : enqueue();
    }
    std::vector<float> result = store.read(store.parameters());
    const device::StepScalars last = runner.network.read_step_scalars();
    result.push_back(static_cast<float>(last.loss_sum));
    result.push_back(last.loss_scale);
    return result;
}

TEST_P(NetworkOn, TrainsToTheSameBitsRecordedAndEnqueued) {
    const Graph graph = fuse(every_operation());
    const std::vector<float> enqueued = trained(repeatable_runner(graph), graph, false);
    EXPECT_EQ(enqueued.back(), 16) << "the loss scale doubles twice in five steps";
    for (const float value : enqueued) ASSERT_TRUE(std::isfinite(value));
    if (!GetParam().make()->can_record()) return;
    EXPECT_EQ(trained(repeatable_runner(graph), graph, true), enqueued);
}

INSTANTIATE_TEST_SUITE_P(Devices, NetworkOn, testing::ValuesIn(device::device_rows()),
                         [](const auto& test) { return device::to_string(test.param); });

}  // namespace
}  // namespace hpcai::graph
