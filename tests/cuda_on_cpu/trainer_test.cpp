// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <hpcai/tensor/half.hpp>

#include "device/cuda/cuda_device.hpp"
#include "storage/temporary_folder.hpp"
#include "training/networks.hpp"

/// The Trainer's loop with recorded, repeated steps whose results are read rarely.
namespace hpcai::training {
namespace {

using storage::error_of;
using tensor::DType;

constexpr int kBatch = 16;
constexpr std::int64_t kSteps = 25;  // per epoch; results are read after 20 and after the last
constexpr int kEpochs = 2;

struct Course {
    std::vector<StepReport> reports;
    std::vector<EpochReport> epochs;
    std::vector<float> parameters;
    std::int64_t skipped_steps = 0;
};

class RecordedTrainer : public testing::Test {
protected:
    SmallModel on_gpu(const config::Config& config, DType compute) const {
        return {config,
                kSteps,
                *self_,
                small_graph(kBatch),
                device::cuda::make_cuda_device({.autotune = false}),
                compute};
    }
    SmallModel on_cpu(const config::Config& config) const {
        return {config, kSteps, *self_, small_graph(kBatch)};
    }

    static Course train(SmallModel& model) {
        Course course;
        ToySource source(kBatch, kSteps);
        for (int epoch = 0; epoch < kEpochs; ++epoch) {
            source.restart();
            course.epochs.push_back(model.trainer->train_epoch(
                epoch, source,
                [&](const StepReport& report) { course.reports.push_back(report); }));
        }
        course.parameters = model.store.read(model.store.parameters());
        course.skipped_steps = model.trainer->skipped_steps();
        return course;
    }

    static double distance(const std::vector<float>& a, const std::vector<float>& b) {
        double difference = 0, length = 0;
        for (std::size_t i = 0; i < b.size(); ++i) {
            difference += std::pow(static_cast<double>(a.at(i)) - b[i], 2);
            length += std::pow(b[i], 2);
        }
        return std::sqrt(difference / length);
    }

    std::unique_ptr<comm::Communicator> self_ = comm::make_self_communicator();
    config::Config config_ = small_config(kBatch, kEpochs);
};

TEST_F(RecordedTrainer, TakesTheStepsOfTheCpu) {
    SmallModel gpu = on_gpu(config_, DType::f32), cpu = on_cpu(config_);
    const Course got = train(gpu), want = train(cpu);
    EXPECT_LE(distance(got.parameters, want.parameters), 1e-4) << "after fifty steps";
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
        const auto number = static_cast<std::size_t>(epoch);
        EXPECT_NEAR(got.epochs[number].mean_loss, want.epochs[number].mean_loss, 1e-4);
    }
    EXPECT_EQ(got.skipped_steps, 0);
}

TEST_F(RecordedTrainer, ReportsTheMeanLossOfTheStepsThatItHasRead) {
    SmallModel gpu = on_gpu(config_, DType::f32), cpu = on_cpu(config_);
    const Course got = train(gpu), want = train(cpu);
    ASSERT_EQ(got.reports.size(), kEpochs * kSteps);
    for (std::size_t step = 0; step < 19; ++step) EXPECT_TRUE(std::isnan(got.reports[step].loss));
    double first = 0, rest = 0;
    for (std::size_t step = 0; step < 20; ++step) first += want.reports[step].loss / 20;
    for (std::size_t step = 20; step < 25; ++step) rest += want.reports[step].loss / 5;
    EXPECT_NEAR(got.reports[19].loss, first, 1e-4);
    EXPECT_NEAR(got.reports[23].loss, first, 1e-4);
    EXPECT_NEAR(got.reports[24].loss, rest, 1e-4);
}

TEST_F(RecordedTrainer, ReadsEveryStepWhenConfigured) {
    config_.run.loss_steps = 1;
    SmallModel gpu = on_gpu(config_, DType::f32), cpu = on_cpu(config_);
    const Course got = train(gpu), want = train(cpu);
    for (std::size_t step = 0; step < want.reports.size(); ++step) {
        EXPECT_NEAR(got.reports[step].loss, want.reports[step].loss, 2e-4) << step;
    }
}

TEST_F(RecordedTrainer, FindsALossScaleInMixedPrecisionAndLearns) {
    SmallModel gpu = on_gpu(config_, DType::f16), cpu = on_cpu(config_);
    const Course got = train(gpu), want = train(cpu);
    EXPECT_LT(got.skipped_steps, 10) << "of fifty";
    EXPECT_NEAR(got.epochs.back().mean_loss, want.epochs.back().mean_loss, 0.05);
}

TEST_F(RecordedTrainer, KeepsParametersInFp16AloneInPureFp16) {
    const auto in_fp16 = [](const Course& course) {
        return std::ranges::count_if(course.parameters, [](float value) {
            return tensor::from_f16(tensor::to_f16(value)) == value;
        });
    };
    SmallModel mixed = on_gpu(config_, DType::f16);
    const Course with_master = train(mixed);
    config_.training.precision = config::Precision::fp16;
    SmallModel pure = on_gpu(config_, DType::f16), cpu = on_cpu(config_);
    const Course got = train(pure), want = train(cpu);
    EXPECT_EQ(in_fp16(got), std::ssize(got.parameters));
    EXPECT_LT(in_fp16(with_master), std::ssize(with_master.parameters) / 2);
    EXPECT_NEAR(got.epochs.back().mean_loss, want.epochs.back().mean_loss, 0.1);
}

TEST_F(RecordedTrainer, BlamesALossScaleThatIsTooLarge) {
    config_.training.loss_scale = 65536;
    config_.training.batch_size = kBatch;
    SmallModel gpu = on_gpu(config_, DType::f16);
    // Each row's loss gradient is multiplied by 4096, and weights that are 1000 times too large
    // overflow.
    std::vector<float> weights = gpu.store.read(gpu.store.parameters());
    for (float& weight : weights) weight *= 1000;
    gpu.store.write(weights, gpu.store.parameters());
    const std::string message = error_of(ExitCode::internal, [&] { train(gpu); });
    EXPECT_THAT(message, testing::HasSubstr("one of the steps 0 to 19"));
    EXPECT_THAT(message, testing::HasSubstr("training.loss_scale"));
}

TEST_F(RecordedTrainer, ThrowsWhatItsSourceThrowsAtTheNextReadingAndTakesNoStepWithIt) {
    SmallModel gpu = on_gpu(config_, DType::f32), cpu = on_cpu(config_);
    std::vector<std::vector<float>> parameters;
    for (SmallModel* model : {&gpu, &cpu}) {
        ToySource source(kBatch, kSteps);
        source.set_failure(7, [] { throw Error(ExitCode::data, "a.jpg: is cut"); });
        const std::string message = error_of(ExitCode::data, [&] {
            model->trainer->train_epoch(0, source, [](const StepReport&) {});
        });
        EXPECT_EQ(message, "a.jpg: is cut");
        parameters.push_back(model->store.read(model->store.parameters()));
    }
    EXPECT_LE(distance(parameters[0], parameters[1]), 1e-5);
}

}  // namespace
}  // namespace hpcai::training
