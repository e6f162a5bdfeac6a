// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "device/device_rows.hpp"
#include "support/naive_random.hpp"

/// What devices do at the end of a training step, and with steps that were recorded.
namespace hpcai::device {
namespace {

/// Flat buffers in device memory, random at first, and the numbers of a step.
class Buffers {
public:
    Buffers(Device& device, std::size_t elements) : device_(device), elements_(elements) {
        naive::Random random(tensor::DType::f32, 9);
        for (auto& buffer : buffers_) {
            const auto tensor = random.normal({static_cast<std::int64_t>(elements)});
            const std::vector<float> values(tensor.values.begin(), tensor.values.end());
            buffer = device.allocate(elements * sizeof(float));
            device.upload(buffer->data(), std::as_bytes(std::span(values)));
        }
        numbers_ = device.allocate(sizeof(StepNumbers));
        set(StepNumbers{});
    }

    SgdTensors tensors() const { return {span(0), span(1), span(2), numbers()}; }
    StepNumbers* numbers() const { return static_cast<StepNumbers*>(numbers_->data()); }
    std::span<float> gradients() const { return span(1); }

    void set(const StepNumbers& numbers) {
        device_.upload(numbers_->data(), std::as_bytes(std::span(&numbers, 1)));
    }
    StepNumbers get() const {
        StepNumbers numbers;
        device_.download(std::as_writable_bytes(std::span(&numbers, 1)), numbers_->data());
        return numbers;
    }
    std::vector<float> read(std::span<const float> part) const {
        std::vector<float> values(part.size());
        device_.download(std::as_writable_bytes(std::span(values)), part.data());
        return values;
    }
    void write(std::span<float> part, const std::vector<float>& values) {
        device_.upload(part.data(), std::as_bytes(std::span(values)));
    }

private:
    std::span<float> span(std::size_t index) const {
        return {static_cast<float*>(buffers_[index]->data()), elements_};
    }

    Device& device_;
    std::size_t elements_;
    std::array<std::unique_ptr<Memory>, 3> buffers_;
    std::unique_ptr<Memory> numbers_;
};

class UpdateOf : public testing::TestWithParam<DeviceRow> {
protected:
    /// The optimizer step in doubles, over three steps with a constant gradient.
    void expect_like_reference(const Sgd& sgd, std::size_t elements) {
        const auto device = GetParam().make();
        Buffers buffers(*device, elements);
        const auto [w, g, v, numbers] = buffers.tensors();
        const std::vector<float> w0 = buffers.read(w), g0 = buffers.read(g), v0 = buffers.read(v);
        std::vector<double> parameter(w0.begin(), w0.end()), velocity(v0.begin(), v0.end());
        constexpr double kRate = 0.125, kFactor = 0.5;
        buffers.set({.learning_rate = kRate, .gradient_factor = kFactor});
        const auto update = device->build(sgd, buffers.tensors());
        for (int step = 0; step < 3; ++step) {
            update->run();
            for (const auto& [begin, end, decays, unused] : sgd.ranges) {
                const double decay = decays ? sgd.weight_decay : 0;
                for (std::size_t i = begin; i < end; ++i) {
                    const double slope = kFactor * g0[i] + decay * parameter[i];
                    velocity[i] = sgd.momentum * velocity[i] + slope;
                    parameter[i] -=
                        kRate * (sgd.nesterov ? slope + sgd.momentum * velocity[i] : velocity[i]);
                }
            }
        }
        const std::vector<float> got = buffers.read(w), speed = buffers.read(v);
        for (std::size_t i = 0; i < elements; ++i) {
            ASSERT_NEAR(got[i], parameter[i], 1e-5) << i;
            ASSERT_NEAR(speed[i], velocity[i], 1e-5) << i;
        }
        EXPECT_EQ(buffers.read(g), g0);
    }
};

TEST_P(UpdateOf, SgdAgreesWithReference) {
    expect_like_reference({0.9f, 1e-2f, false, {{0, 100, true}}}, 100);
    expect_like_reference({0.9f, 1e-2f, true, {{0, 100, true}}}, 100);
    expect_like_reference({0, 0, false, {{0, 1, true}}}, 1);
    expect_like_reference({0.9f, 0, false, {{0, (1 << 15) + 7, true}}}, (1 << 15) + 7);
    expect_like_reference({0.9f, 0, false, {}}, 0);
}

TEST_P(UpdateOf, SgdDecaysWhereItIsToldToAndLeavesTheRestAlone) {
    expect_like_reference(
        {0.9f, 0.25f, false, {{0, 13, true}, {16, 33, false}, {48, 48, true}, {64, 701, true}}},
        720);
    expect_like_reference({0.9f, 0.25f, false, {}}, 40);
}

TEST_P(UpdateOf, SgdChangesNothingWhileGradientsAreNotFinite) {
    const auto device = GetParam().make();
    Buffers buffers(*device, 100);
    const auto [w, g, v, unused] = buffers.tensors();
    const auto update = device->build(Sgd{0.9f, 0.1f, false, {{0, 100, true}}}, buffers.tensors());
    const std::vector<float> before = buffers.read(w), speed = buffers.read(v);
    buffers.set({.learning_rate = 1, .finite = 0});
    update->run();
    EXPECT_EQ(buffers.read(w), before);
    EXPECT_EQ(buffers.read(v), speed);
    buffers.set({.learning_rate = 1});
    update->run();
    EXPECT_NE(buffers.read(w), before);
}

TEST_P(UpdateOf, ChecksThatEveryNumberIsFinite) {
    const auto device = GetParam().make();
    Buffers buffers(*device, 5003);
    const std::vector<float> good = buffers.read(buffers.gradients());
    const auto is_finite = [&] {
        buffers.set(StepNumbers{});
        device->check_finite(buffers.gradients(), buffers.numbers());
        return buffers.get().finite != 0;
    };
    EXPECT_TRUE(is_finite());
    for (const std::size_t at : {std::size_t{0}, std::size_t{2500}, std::size_t{5002}}) {
        for (const float bad : {INFINITY, -INFINITY, std::nanf("")}) {
            std::vector<float> values = good;
            values[at] = bad;
            buffers.write(buffers.gradients(), values);
            EXPECT_FALSE(is_finite()) << at;
        }
    }
    buffers.write(buffers.gradients(), good);
    buffers.set({.finite = 0});
    device->check_finite(buffers.gradients(), buffers.numbers());
    EXPECT_EQ(buffers.get().finite, 0u) << "what another found is forgotten";
}

TEST_P(UpdateOf, MovesTheLossScaleByItsPolicy) {
    const auto device = GetParam().make();
    Buffers buffers(*device, 1);
    const LossScalePolicy policy{
        .dynamic = true, .good_steps_to_double = 2, .smallest = 4, .largest = 16, .loss_weight = 2};
    buffers.set({.loss_scale = 8, .good_steps = 0});
    const auto step = [&](bool good) {
        StepNumbers numbers = buffers.get();
        EXPECT_EQ(numbers.finite, 1u);
        numbers.finite = good ? 1 : 0;
        buffers.set(numbers);
        device->finish_step(policy, buffers.numbers());
        EXPECT_EQ(buffers.get().gradient_factor, 2 / buffers.get().loss_scale);
        return buffers.get().loss_scale;
    };
    EXPECT_EQ(step(true), 8);
    EXPECT_EQ(step(true), 16);
    EXPECT_EQ(step(true), 16);
    EXPECT_EQ(step(true), 16) << "beyond the largest";
    for (const float scale : {8.0F, 4.0F, 4.0F}) EXPECT_EQ(step(false), scale);
    EXPECT_EQ(buffers.get().skipped_steps, 3u);
    EXPECT_EQ(step(true), 4);
    EXPECT_EQ(step(true), 8);
    device->finish_step({.dynamic = false, .loss_weight = 0.5F}, buffers.numbers());
    EXPECT_EQ(buffers.get().loss_scale, 8);
    EXPECT_EQ(buffers.get().gradient_factor, 0.0625F);
}

/// Parameters after steps with these learning rates, with `run` called for each of them.
std::vector<float> stepped(Device& device, bool recorded) {
    Buffers buffers(device, 3000);
    const auto [w, g, v, unused] = buffers.tensors();
    const auto update = device.build(Sgd{0.9f, 0.1f, true, {{0, 3000, true}}}, buffers.tensors());
    const auto enqueue = [&, gradients = g] {
        device.check_finite(gradients, buffers.numbers());
        device.add_losses(gradients, buffers.numbers());
        update->run();
        device.finish_step({.dynamic = true, .good_steps_to_double = 3}, buffers.numbers());
    };
    const std::vector<float> before = buffers.read(w);
    const auto recording = recorded ? device.record(enqueue) : nullptr;
    EXPECT_EQ(buffers.read(w), before) << "a recording did the work";
    for (const float learning_rate : {0.5F, 0.25F, 1.0F, 0.125F, 0.75F}) {
        device.enqueue_upload(&buffers.numbers()->learning_rate,
                              std::as_bytes(std::span(&learning_rate, 1)));
        recorded ? recording->run() : enqueue();
    }
    std::vector<float> result = buffers.read(w);
    const StepNumbers numbers = buffers.get();
    result.push_back(numbers.loss_scale);
    result.push_back(static_cast<float>(numbers.loss_sum));
    result.push_back(static_cast<float>(numbers.good_steps));
    return result;
}

TEST_P(UpdateOf, RecordedStepsHaveTheBitsOfEnqueuedOnes) {
    const auto device = GetParam().make();
    if (!device->records()) {
        EXPECT_THROW(device->record([] {}), Error);
        return;
    }
    EXPECT_EQ(stepped(*device, true), stepped(*device, false));
}

TEST_P(UpdateOf, RecordsNothingThatWaitsAndGoesOnAfterwards) {
    const auto device = GetParam().make();
    if (!device->records()) return;
    EXPECT_THROW(device->record([&] { device->synchronize(); }), Error);
    EXPECT_THROW(device->record([&] { throw Error(ExitCode::data, "no picture"); }), Error);
    EXPECT_EQ(stepped(*device, true), stepped(*device, false));
}

INSTANTIATE_TEST_SUITE_P(Devices, UpdateOf, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
