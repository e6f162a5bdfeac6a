// SPDX-License-Identifier: Apache-2.0
#include <set>

#include <gtest/gtest.h>

#include <hpcai/comm/communicator.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/reference/load_values.hpp>
#include <hpcai/training/step_runner.hpp>

#include "device/cuda/cuda_device.hpp"
#include "graph/graphs.hpp"
#include "support/network_runner.hpp"

/// Working copies that the optimizer writes with the parameters, without a separate pass.
namespace hpcai::training {
namespace {

using graph::ParameterId;
using tensor::DType;

constexpr int kTrainedSteps = 5;  // two are enqueued, and the rest repeat the third

/// A small ResNet of fused operations on the GPU that tests/simt emulates.
class WorkingCopies : public testing::TestWithParam<DType> {
protected:
    WorkingCopies() {
        config_.training.loss_scale = 1;
        config_.training.batch_size = 3;
        network_.set_parameters(parameters_);
        graph::NetworkRunner::set_inputs(network_.network, inputs_);
    }

    std::vector<ParameterId> copied() {
        std::vector<ParameterId> ids;
        for (std::size_t index = 0; index < graph_.parameters().size(); ++index) {
            const auto id = static_cast<ParameterId>(index);
            if (network_.network.working_copy(id) != nullptr) ids.push_back(id);
        }
        return ids;
    }
    std::vector<float> copy_of(ParameterId id) {
        const auto elements = static_cast<std::int64_t>(network_.store.parameter(id).size());
        std::vector<float> values(static_cast<std::size_t>(elements));
        load_channels_last(*network_.device, values, {elements}, GetParam(),
                           network_.network.working_copy(id));
        return values;
    }
    void write_copy(ParameterId id, const std::vector<float>& values) {
        network_.device->store_channels_last(network_.network.working_copy(id),
                                             {static_cast<std::int64_t>(values.size())}, GetParam(),
                                             values);
    }
    void spoil_copies() {
        for (const ParameterId id : copied()) {
            write_copy(id, std::vector<float>(network_.store.parameter(id).size(), 0.5f));
        }
    }
    bool are_spoiled() {
        for (const ParameterId id : copied()) {
            for (const float value : copy_of(id)) {
                if (value != 0.5f) return false;
            }
        }
        return true;
    }
    /// Returns whether each copy is its master, rounded as the device rounds.
    bool are_fresh() {
        for (const ParameterId id : copied()) {
            const std::vector<float> copy = copy_of(id);
            write_copy(id, network_.store.read(network_.store.parameter(id)));
            if (copy_of(id) != copy) return false;
        }
        return true;
    }
    std::vector<float> losses() {
        network_.device->synchronize();
        return read_losses(*network_.device, network_.network);
    }
    /// Inputs share memory with values that the step writes.
    void run(double learning_rate, bool has_failed = false) {
        graph::NetworkRunner::set_inputs(network_.network, inputs_);
        step_.run(learning_rate, has_failed);
    }

    graph::Graph graph_ = graph::small_resnet();
    graph::Tensors parameters_ = graph::random_parameters(graph_);
    graph::Inputs inputs_ = graph::random_inputs(graph_);
    config::Config config_;
    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
    std::unique_ptr<comm::GradientReducer> reducer_ = comm::make_mpi_reducer(*self_);
    graph::NetworkOptions options_{device::Mode::training, GetParam()};
    graph::NetworkRunner network_{
        graph::fuse_for_device(graph_, *device::cuda::make_cuda_device({.autotune = false}),
                               options_),
        device::cuda::make_cuda_device({.autotune = false}), options_};
    TrainingStep step_{{config_, network_.network, *network_.device, network_.store, *reducer_}};
};

TEST_P(WorkingCopies, AreOfAllMatricesButTheStemsPaddedFilters) {
    std::set<std::string> with_copy, matrices;
    for (const ParameterId id : copied()) {
        with_copy.insert(graph_.parameters()[static_cast<std::size_t>(id)].name);
    }
    for (const graph::Parameter& parameter : graph_.parameters()) {
        if (parameter.shape.rank() > 1) matrices.insert(parameter.name);
    }
    EXPECT_EQ(matrices.erase("conv.weight"), 1u);
    EXPECT_EQ(with_copy, matrices);
}

TEST_P(WorkingCopies, FollowTheParametersInEveryStep) {
    std::vector<float> before = network_.store.read(network_.store.parameters());
    for (int step = 0; step < kTrainedSteps; ++step) {
        run(0.1);
        const std::vector<float> after = network_.store.read(network_.store.parameters());
        EXPECT_NE(after, before) << step;
        EXPECT_TRUE(are_fresh()) << step;
        before = after;
    }
}

TEST_P(WorkingCopies, AreWrittenByTheUpdateAloneOnceTrainingContinues) {
    run(0);
    const std::vector<float> right = losses();
    for (int step = 1; step < kTrainedSteps; ++step) {
        spoil_copies();
        run(0);
        EXPECT_NE(losses(), right) << "step " << step << " cast them before it read them";
        EXPECT_TRUE(are_fresh()) << step;
        run(0);
        EXPECT_EQ(losses(), right) << step;
    }
}

TEST_P(WorkingCopies, StayUnchangedWhenAnUpdateIsSkipped) {
    for (int step = 0; step < kTrainedSteps; ++step) {
        run(0.1);
        run(0.1, true);
        EXPECT_TRUE(are_fresh()) << step;
        spoil_copies();
        run(0.1, true);
        EXPECT_TRUE(are_spoiled()) << step;
        run(0);
    }
    EXPECT_EQ(step_.read().skipped_steps, 2u * kTrainedSteps);
}

TEST_P(WorkingCopies, AreMadeAgainWhereParametersAreWritten) {
    for (int step = 0; step < kTrainedSteps; ++step) {
        run(0.1);
        network_.set_parameters(parameters_);
        run(0.1, true);
        EXPECT_TRUE(are_fresh()) << step;
        EXPECT_EQ(network_.store.read(network_.store.parameter(0))[0],
                  static_cast<float>(parameters_[0].values[0]));
    }
}

/// Inference has separate copies, which no update writes.
TEST_P(WorkingCopies, OfInferenceAreMadeByPrepare) {
    graph::Network inference(graph_, *network_.device, network_.store,
                             {device::Mode::inference, GetParam()});
    graph::Observer nobody;
    std::vector<double> before;
    for (int step = 0; step < kTrainedSteps; ++step) {
        run(0.1);
        graph::NetworkRunner::set_inputs(inference, inputs_);
        inference.prepare(nobody);
        inference.forward(nobody);
        const auto got = network_.read(inference).probabilities;
        graph::Network anew(graph_, *network_.device, network_.store,
                            {device::Mode::inference, GetParam()});
        graph::NetworkRunner::set_inputs(anew, inputs_);
        anew.prepare(nobody);
        anew.forward(nobody);
        EXPECT_EQ(got, network_.read(anew).probabilities) << step;
        EXPECT_NE(got, before) << step;
        before = got;
    }
}

INSTANTIATE_TEST_SUITE_P(, WorkingCopies, testing::Values(DType::f16, DType::bf16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace hpcai::training
