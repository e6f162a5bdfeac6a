// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <hpcai/ops/operation.hpp>
#include <hpcai/reference/naive_int8.hpp>

#include "graph/graphs.hpp"
#include "storage/temporary_folder.hpp"
#include "support/network_runner.hpp"
#include "support/recording_device.hpp"

namespace hpcai::graph {
namespace {

constexpr device::RoundingKey kKey{.seed = 20, .model = 2, .rank = 1};

/// A first convolution in fp32, and two of one shape in int8.
Graph two_convolutions() {
    GraphMaker make;
    ValueId x = make.convolution("first", make.images({2, 6, 6, 3}), 32, 3);
    x = make.convolution("second", x, 32);
    return make.finish(make.convolution("third", x, 32), 3);
}

/// Convolutions in int8, each with the random numbers of its node, and all else in fp64.
naive::Solution solve_in_int8(const naive::Problem& problem, std::size_t node,
                              const naive::StepPosition& position) {
    const auto* op = std::get_if<ops::Convolution>(&problem.operation);
    if (op == nullptr || !computes_in_int8(*op, ops::Pass::forward)) return solve(problem);
    naive::Problem all = problem;
    if (all.output_gradients.empty()) all.output_gradients = {naive::Tensor(output_shape(*op))};
    device::RoundingKey key = kKey;
    key.node = static_cast<std::uint32_t>(node);
    const naive::Int8Solution solution = solve_int8(*op, all, key, position);
    return {.output = solution.output,
            .input_gradients = {solution.input_gradient},
            .parameter_gradients = solve(all).parameter_gradients};
}

class Int8Network : public testing::Test {
protected:
    void SetUp() override {
        if (!device::make_cpu_device({})->has_int8()) {
            GTEST_SKIP() << "this CPU does not multiply int8";
        }
        runner_ = std::make_unique<NetworkRunner>(graph_, device::make_cpu_device({}),
                                                  NetworkOptions{.int8 = true, .rounding = kKey});
        runner_->set_parameters(parameters_);
    }

    /// Gradients of all parameters from a step of `network` that keeps its step number.
    std::vector<float> gradients(Network& network) {
        Observer nobody;
        NetworkRunner::set_inputs(network, inputs_);
        runner_->network.prepare(nobody);
        network.forward(nobody);
        network.backward(nobody);
        return runner_->store.read(runner_->store.gradients());
    }
    std::vector<float> gradients() { return gradients(runner_->network); }

    template <typename T>
    void set_number(T device::StepScalars::*number, T value) {
        runner_->device->upload(&(runner_->network.step_scalars()->*number),
                                std::as_bytes(std::span(&value, 1)));
    }

    Graph graph_ = two_convolutions();
    Inputs inputs_ = random_inputs(graph_);
    Tensors parameters_ = random_parameters(graph_);
    std::unique_ptr<NetworkRunner> runner_;
};

// A few of a thousand numbers, those near a half, may be rounded differently after fp32 than after
// fp64. With other random numbers, all differ.
TEST_F(Int8Network, AgreesWithNaiveConvolutionsThatRoundWithTheNumbersOfTheirNodes) {
    const auto solve_for = [](std::uint32_t step) {
        return [step](const naive::Problem& problem, std::size_t node) {
            return solve_in_int8(problem, node, {.training_step = step});
        };
    };
    const naive::NetworkResult want =
        naive::Network(graph_, tensor::DType::f32, solve_for(0)).run(inputs_, parameters_, 1);
    const naive::NetworkResult other =
        naive::Network(graph_, tensor::DType::f32, solve_for(1)).run(inputs_, parameters_, 1);
    const naive::NetworkResult got = runner_->step(inputs_);
    expect_same_step(got, want, graph_, 1e-3);
    EXPECT_GT(relative_distance(got.gradients[0].values, other.gradients[0].values), 3e-3);
}

TEST_F(Int8Network, RoundsOtherwiseInEveryStepAndMicroBatch) {
    std::vector<std::vector<float>> seen{gradients()};
    EXPECT_EQ(gradients(), seen.front()) << "nothing has changed";
    const auto expect_new = [&](const std::string& what) {
        seen.push_back(gradients());
        for (std::size_t i = 0; i + 1 < seen.size(); ++i) EXPECT_NE(seen.back(), seen[i]) << what;
    };
    runner_->device->finish_step({}, runner_->network.step_scalars());
    expect_new("a step");
    set_number(&device::StepScalars::finite, std::uint32_t{0});
    runner_->device->finish_step({}, runner_->network.step_scalars());
    expect_new("a step that is left out");
    set_number(&device::StepScalars::micro_batch, std::uint32_t{1});
    expect_new("a micro-batch");
}

TEST_F(Int8Network, IsRoundedLikeItsTwinInTheSameMicroBatch) {
    Network twin(runner_->network, runner_->store);
    for (const std::uint32_t micro_batch : {0u, 3u}) {
        set_number(&device::StepScalars::micro_batch, micro_batch);
        const std::vector<float> first = gradients();
        EXPECT_EQ(gradients(twin), first) << micro_batch;
    }
}

TEST(Int8Networks, AreNotMadeForDevicesWithoutInt8) {
    const Graph graph = two_convolutions();
    device::RecordingDevice device(false);
    ParameterStore store(graph, device);
    const auto make = [&] { Network(graph, device, store, {.int8 = true}); };
    const std::string message = storage::error_of(ExitCode::internal, make);
    EXPECT_NE(message.find("int8"), std::string::npos) << message;
}

}  // namespace
}  // namespace hpcai::graph
