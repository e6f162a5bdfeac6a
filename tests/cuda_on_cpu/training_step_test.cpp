// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/training/predict.hpp>
#include <hpcai/training/step_runner.hpp>

#include "device/cuda/cuda_device.hpp"
#include "simt/streams.hpp"
#include "training/networks.hpp"

/// Waits of a rank's host for another rank, all of which have a deadline.
namespace hpcai::training {
namespace {

constexpr int kBatchRows = 32;  // more than a memory page of pixels

/// A reducer of one rank that records its calls.
class NotingReducer final : public comm::GradientReducer {
public:
    int size() const override { return 1; }
    std::string description() const override { return "notes"; }
    std::unique_ptr<comm::Request> start_all_reduce(std::span<float>) override { return nullptr; }
    bool can_be_recorded() const override { return true; }
    void check() override { notes += "check "; }
    void end_step() override { notes += "end "; }

    std::string notes;
};

class StepOnGpu : public testing::Test {
protected:
    StepOnGpu() { initialize(graph_, 1, 0, store_); }

    const config::Config config_ = small_config(kBatchRows, 1);
    const graph::NetworkOptions options_{device::Mode::training, tensor::DType::f32};
    const graph::Graph graph_ = small_graph(kBatchRows);
    const std::unique_ptr<device::Device> gpu_ =
        device::cuda::make_cuda_device({.autotune = false});
    graph::ParameterStore store_{graph_, *gpu_};
    ToySource source_{kBatchRows, 8};
};

TEST_F(StepOnGpu, EndsForTheReducerHoweverItIsEnqueued) {
    graph::Network network(graph_, *gpu_, store_, options_);
    NotingReducer reducer;
    TrainingStep step({config_, network, *gpu_, store_, reducer});
    const std::vector<std::string> notes{"end ", "end ", "check end ", "end ", "end "};
    for (std::size_t number = 0; number < notes.size(); ++number) {
        reducer.notes.clear();
        feed(network, source_.next());
        step.run(0.1);
        EXPECT_EQ(reducer.notes, notes[number]) << number;
    }
}

TEST_F(StepOnGpu, HasTheSameBitsAndNoPhasesWhereNothingIsRecorded) {
    const auto train = [&](bool recording) {
        config::Config config = config_;
        config.device.recording = recording;
        graph::ParameterStore store(graph_, *gpu_);
        initialize(graph_, 1, 0, store);
        graph::Network network(graph_, *gpu_, store, options_);
        NotingReducer reducer;
        ToySource source{kBatchRows, 8};
        StepLog log({.now = [] { return 0.0; }}, *gpu_);
        TrainingStep step({config, network, *gpu_, store, reducer, &log});
        bool has_phases = false;
        for (int number = 0; number < 4; ++number) {
            feed(network, source.next());
            step.run(0.1);
            has_phases = step.read().phases.has_value();
        }
        EXPECT_EQ(has_phases, recording);
        return store.read(store.parameters());
    };
    EXPECT_EQ(train(false), train(true));
}

TEST_F(StepOnGpu, HasItsPhasesByTheClockOfTheGpu) {
    graph::Network network(graph_, *gpu_, store_, options_);
    NotingReducer reducer;
    StepLog log({.now = [] { return 0.0; }}, *gpu_);
    TrainingStep step({config_, network, *gpu_, store_, reducer, &log});
    const auto take = [&] {
        feed(network, source_.next());
        step.run(0.1);
    };
    take();
    take();
    EXPECT_FALSE(step.read().phases) << "no step was repeated";
    take();
    const std::optional<PhaseSeconds> phases = step.read().phases;
    ASSERT_TRUE(phases);
    EXPECT_GT(phases->forward, 0);
    EXPECT_GT(phases->backward, 0);
    EXPECT_GT(phases->optimizer, 0);
    EXPECT_GE(phases->communication, 0);
    EXPECT_TRUE(std::isnan(phases->input_wait));
    EXPECT_TRUE(std::isnan(phases->other));
    EXPECT_FALSE(step.read().phases) << "of a step that has been read";
    EXPECT_EQ(log.kernels(), nullptr) << "the host sees only that they are enqueued";
}

TEST_F(StepOnGpu, IsNotTimedUnlessRequested) {
    graph::Network network(graph_, *gpu_, store_, options_);
    NotingReducer reducer;
    StepLog log({.now = [] { return 0.0; }, .measure_phases = false}, *gpu_);
    TrainingStep step({config_, network, *gpu_, store_, reducer, &log});
    for (int i = 0; i < 4; ++i) {
        feed(network, source_.next());
        step.run(0.1);
    }
    EXPECT_FALSE(step.read().phases);
}

TEST_F(StepOnGpu, GivesItsLogTheMeanOfStepsReadTogether) {
    double now = 0;
    StepLog log({.now = [&now] { return now; }}, *gpu_);
    log.begin();
    for (int step = 0; step < 4; ++step) {
        now += step == 3 ? 7 : 1;  // the host waits when it reads results
        if (step == 3) log.set_device_phases({.forward = 0.5, .backward = 1});
        log.end_step({.step = step}, step == 3);
    }
    EXPECT_EQ(log.step_seconds(), std::vector<double>(4, 2.5));
    EXPECT_TRUE(std::isnan(log.steps()[2].phases.forward));
    EXPECT_EQ(log.steps()[3].phases.forward, 0.5);
    EXPECT_EQ(log.steps()[3].end_seconds, 10);
}

TEST_F(StepOnGpu, IsNotWaitedForByTheBatchAfterIt) {
    const auto memory = gpu_->allocate(5000);
    const std::vector<std::byte> bytes(memory->bytes());
    for (int i = 0; i < 2; ++i) gpu_->enqueue_upload(memory->data(), bytes);
    graph::Network network(graph_, *gpu_, store_, options_);
    bool is_over = false;
    simt::enqueue(device::cuda::context_of(*gpu_).stream, [&] { is_over = true; });
    feed(network, source_.next());
    EXPECT_FALSE(is_over);
    gpu_->synchronize();
    EXPECT_TRUE(is_over);
}

}  // namespace
}  // namespace hpcai::training
