// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/reference/naive_random.hpp>

#include "device/device_rows.hpp"
#include "support/reference_optimizer.hpp"

/// The last operations of a training step on devices, and captured steps.
namespace hpcai::device {
namespace {

/// Flat buffers in device memory, initially random, and the scalars of a step.
class Buffers {
public:
    Buffers(Device& device, std::size_t elements) : device_(device), elements_(elements) {
        naive::Random random(tensor::DType::f32, 9);
        for (std::size_t index = 0; index < buffers_.size(); ++index) {
            const auto tensor = random.normal({static_cast<std::int64_t>(elements)});
            std::vector<float> values(tensor.values.begin(), tensor.values.end());
            if (index == 3) {  // a mean of squares, whose root is a divisor
                for (float& value : values) value = 0.25F + value * value;
            }
            buffers_[index] = device.allocate(elements * sizeof(float));
            device.upload(buffers_[index]->data(), std::as_bytes(std::span(values)));
        }
        numbers_ = device.allocate(sizeof(StepScalars));
        set(StepScalars{});
    }

    /// Returns the tensors with the states that the rule has.
    OptimizerTensors tensors(const OptimizerRule& rule) const {
        const bool has_one = state_count(rule) == 1;
        return {parameters(),
                gradients(),
                {has_one ? squares_or_mean(rule) : span(2), has_one ? std::span<float>() : span(3)},
                numbers()};
    }
    StepScalars* numbers() const { return static_cast<StepScalars*>(numbers_->data()); }
    std::span<float> parameters() const { return span(0); }
    std::span<float> gradients() const { return span(1); }

    void set(const StepScalars& numbers) {
        device_.upload(numbers_->data(), std::as_bytes(std::span(&numbers, 1)));
    }
    StepScalars get() const {
        StepScalars numbers;
        device_.download(std::as_writable_bytes(std::span(&numbers, 1)), numbers_->data());
        return numbers;
    }
    OptimizerValues values(const OptimizerTensors& tensors) const {
        return {read(tensors.parameters),
                read(tensors.gradients),
                {read(tensors.states[0]), read(tensors.states[1])}};
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
    std::span<float> squares_or_mean(const OptimizerRule& rule) const {
        return span(std::holds_alternative<AdaGrad>(rule) ? 3 : 2);
    }
    std::span<float> span(std::size_t index) const {
        return {static_cast<float*>(buffers_[index]->data()), elements_};
    }

    Device& device_;
    std::size_t elements_;
    std::array<std::unique_ptr<Memory>, 4> buffers_;
    std::unique_ptr<Memory> numbers_;
};

/// Every rule with every setting that changes a formula.
const std::vector<OptimizerRule> kRules{
    Sgd{},
    Sgd{0.9f},
    Sgd{0.9f, true},
    Sgd{0.9f, false, false},
    Sgd{0.9f, true, false},
    Lars{0.9f, false, false, 0.25f},
    Lars{0.9f, true, false, 0.25f},
    Lars{0.5f, false, true, 0.25f, 2},
    Lars{0.5f, true, true, 0.25f},
    Lamb{},
    Lamb{0.5, 0.75, 0.125},
    Adam{},
    Adam{0.5, 0.75, 0.125},
    Adam{.decoupled_decay = true},
    AdaGrad{},
    AdaGrad{0.125f},
};

using Ranges = std::vector<Optimizer::Range>;

class UpdateOf : public testing::TestWithParam<DeviceRow> {
protected:
    /// Runs three steps with a constant gradient and different rates, and compares each with the
    /// naive step from the device's previous state.
    void expect_like_reference(const Optimizer& optimizer, std::size_t elements) {
        const auto device = GetParam().make();
        Buffers buffers(*device, elements);
        const OptimizerTensors tensors = buffers.tensors(optimizer.rule);
        const auto update = device->build(optimizer, tensors);
        for (std::uint32_t step = 0; step < 3; ++step) {
            const StepScalars numbers{.learning_rate = 0.125F / static_cast<float>(1 + step),
                                      .gradient_factor = 0.5,
                                      .taken_steps = step};
            buffers.set(numbers);
            OptimizerValues want = buffers.values(tensors);
            take_reference_step(optimizer, numbers, want);
            update->run();
            const OptimizerValues got = buffers.values(tensors);
            // fp32: a few roundings each
            expect_near(got.parameters, want.parameters, 2e-6);
            for (const std::size_t state : {0, 1}) {
                expect_near(got.states[state], want.states[state], 2e-6);
            }
            EXPECT_EQ(got.gradients, want.gradients);
        }
    }

    static void expect_near(const std::vector<float>& got, const std::vector<float>& want,
                            double tolerance) {
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < got.size(); ++i)
            ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0F, std::abs(want[i]))) << i;
    }
};

TEST_P(UpdateOf, EveryOptimizerAgreesWithItsNaiveTwin) {
    for (std::size_t rule = 0; rule < kRules.size(); ++rule) {
        SCOPED_TRACE(rule);
        for (const std::size_t elements : {std::size_t{1}, std::size_t{100}, std::size_t{40007}}) {
            expect_like_reference({kRules[rule], 1e-2f, {{0, elements, true, true}}}, elements);
        }
        expect_like_reference({kRules[rule], 0, {{0, 100, true, true}}}, 100);
        expect_like_reference({kRules[rule], 0, {}}, 0);
    }
}

TEST_P(UpdateOf, EveryOptimizerUsesDecayAndTrustRatiosOnlyWhereConfigured) {
    const Ranges ranges{{0, 13, true, true}, {16, 33, false},           {48, 48, true, true},
                        {64, 701, true},     {704, 20001, false, true}, {20008, 20024, true, true}};
    for (std::size_t rule = 0; rule < kRules.size(); ++rule) {
        SCOPED_TRACE(rule);
        expect_like_reference({kRules[rule], 0.25f, ranges}, 20040);
        expect_like_reference({kRules[rule], 0.25f, {}}, 40);
    }
}

TEST_P(UpdateOf, NoOptimizerTakesATrustRatioOfNothing) {
    for (const OptimizerRule& rule : {kRules[5], kRules[9]}) {
        for (const bool zero_parameters : {true, false}) {
            const auto device = GetParam().make();
            Buffers buffers(*device, 100);
            const Optimizer optimizer{rule, 0.25f, {{0, 48, true, true}, {48, 100, true, true}}};
            const OptimizerTensors tensors = buffers.tensors(rule);
            const std::vector<float> zeros(48);
            buffers.write((zero_parameters ? buffers.parameters() : buffers.gradients()).first(48),
                          zeros);
            const StepScalars numbers{.learning_rate = 0.125};
            buffers.set(numbers);
            OptimizerValues want = buffers.values(tensors);
            take_reference_step(optimizer, numbers, want);
            device->build(optimizer, tensors)->run();
            expect_near(buffers.values(tensors).parameters, want.parameters, 2e-6);
        }
    }
}

TEST_P(UpdateOf, NoOptimizerChangesAnythingWhileGradientsAreNotFinite) {
    for (const OptimizerRule& rule : kRules) {
        const auto device = GetParam().make();
        Buffers buffers(*device, 100);
        const OptimizerTensors tensors = buffers.tensors(rule);
        const auto update = device->build({rule, 0.1f, {{0, 100, true, true}}}, tensors);
        const OptimizerValues before = buffers.values(tensors);
        buffers.set({.learning_rate = 1, .finite = 0});
        update->run();
        const OptimizerValues after = buffers.values(tensors);
        EXPECT_EQ(after.parameters, before.parameters);
        EXPECT_EQ(after.states, before.states);
        buffers.set({.learning_rate = 1});
        update->run();
        EXPECT_NE(buffers.values(tensors).parameters, before.parameters);
    }
}

TEST_P(UpdateOf, RejectsBuffersAndRangesThatDoNotFit) {
    const auto device = GetParam().make();
    Buffers buffers(*device, 16);
    for (const OptimizerRule& rule : kRules) {
        const OptimizerTensors good = buffers.tensors(rule);
        OptimizerTensors bad = good;
        bad.gradients = bad.gradients.first(8);
        EXPECT_THROW(device->build({rule}, bad), Error);
        bad = good;
        bad.states[static_cast<std::size_t>(state_count(rule)) - 1] = {};
        EXPECT_THROW(device->build({rule}, bad), Error);
        for (const Ranges& ranges :
             {Ranges{{0, 17}}, Ranges{{4, 16}}, Ranges{{8, 16}, {0, 8}}, Ranges{{8, 0}}}) {
            EXPECT_THROW(device->build({rule, 0, ranges}, good), Error);
        }
        device->build({rule, 0, {{0, 16}}}, good);
    }
}

TEST_P(UpdateOf, ChecksThatEveryNumberIsFinite) {
    const auto device = GetParam().make();
    Buffers buffers(*device, 5003);
    const std::vector<float> good = buffers.read(buffers.gradients());
    const auto is_finite = [&] {
        buffers.set(StepScalars{});
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
    const LossScalePolicy policy{.dynamic = true,
                                 .good_steps_to_double = 2,
                                 .min_scale = 4,
                                 .max_scale = 16,
                                 .loss_weight = 2};
    buffers.set({.loss_scale = 8, .good_steps = 0});
    const auto step = [&](bool good) {
        StepScalars numbers = buffers.get();
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
    EXPECT_EQ(buffers.get().taken_steps, 4u);
    EXPECT_EQ(step(true), 4);
    EXPECT_EQ(step(true), 8);
    device->finish_step({.dynamic = false, .loss_weight = 0.5F}, buffers.numbers());
    EXPECT_EQ(buffers.get().loss_scale, 8);
    EXPECT_EQ(buffers.get().gradient_factor, 0.0625F);
}

/// Returns the parameters after steps with these learning rates; calls `run` for each step.
std::vector<float> stepped(Device& device, const OptimizerRule& rule, bool recorded) {
    Buffers buffers(device, 20000);
    const OptimizerTensors tensors = buffers.tensors(rule);
    const std::span<const float> w = tensors.parameters;
    const auto update = device.build({rule, 0.1f, {{0, 20000, true, true}}}, tensors);
    const auto enqueue = [&] {
        device.check_finite(tensors.gradients, buffers.numbers());
        device.add_losses(tensors.gradients, buffers.numbers());
        update->run();
        device.finish_step({.dynamic = true, .good_steps_to_double = 3}, buffers.numbers());
    };
    const std::vector<float> before = buffers.read(w);
    const auto recording = recorded ? device.record(enqueue) : nullptr;
    EXPECT_EQ(buffers.read(w), before) << "a recording ran the work";
    for (const float learning_rate : {0.5F, 0.25F, 1.0F, 0.125F, 0.75F}) {
        device.enqueue_upload(&buffers.numbers()->learning_rate,
                              std::as_bytes(std::span(&learning_rate, 1)));
        recorded ? recording->run() : enqueue();
    }
    std::vector<float> result = buffers.read(w);
    const StepScalars numbers = buffers.get();
    result.push_back(numbers.loss_scale);
    result.push_back(static_cast<float>(numbers.loss_sum));
    result.push_back(static_cast<float>(numbers.good_steps));
    EXPECT_EQ(numbers.taken_steps, 5u);
    return result;
}

TEST_P(UpdateOf, RecordedStepsHaveTheBitsOfEnqueuedOnes) {
    const auto device = GetParam().make();
    if (!device->can_record()) {
        EXPECT_THROW(device->record([] {}), Error);
        return;
    }
    for (const OptimizerRule& rule : kRules) {
        EXPECT_EQ(stepped(*device, rule, true), stepped(*device, rule, false));
    }
}

TEST_P(UpdateOf, OptimizersHaveTheSameBitsWithAnyNumberOfThreads) {
    const auto device = GetParam().make(), one = make_cpu_device({.threads = 1});
    if (device->can_record()) return;  // the CPU cannot capture work
    for (const OptimizerRule& rule : kRules) {
        EXPECT_EQ(stepped(*device, rule, false), stepped(*one, rule, false));
    }
}

TEST_P(UpdateOf, RecordsNothingThatWaitsAndContinuesAfterwards) {
    const auto device = GetParam().make();
    if (!device->can_record()) return;
    EXPECT_THROW(device->record([&] { device->synchronize(); }), Error);
    EXPECT_THROW(device->record([&] { throw Error(ExitCode::data, "no image"); }), Error);
    EXPECT_EQ(stepped(*device, Sgd{0.9f}, true), stepped(*device, Sgd{0.9f}, false));
}

INSTANTIATE_TEST_SUITE_P(Devices, UpdateOf, testing::ValuesIn(device_rows()),
                         [](const auto& test) { return to_string(test.param); });

}  // namespace
}  // namespace hpcai::device
