// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sgd.hpp>

#include <hpcai/device/cpu_device.hpp>

#include "kernels/buffer.hpp"

#include "support/sgd_step.hpp"

namespace hpcai::kernels {
namespace {

constexpr std::int64_t kShift = 24;

/// All that a step reads and writes.
struct State {
    Buffer parameters, gradients, momentum, working;
    std::vector<SgdRange> ranges;
    StepNumbers numbers{.learning_rate = 0.1f, .gradient_factor = 1.0f / 64};

    State(DType dtype, std::int64_t count, Contents& contents)
        : parameters(contents.normal(DType::f32, count)),
          gradients(contents.normal(DType::f32, count)),
          momentum(contents.normal(DType::f32, count)),
          working(dtype, count + kShift) {}

    /// With copies of all ranges but the second, a shift behind where they would lie.
    SgdArguments arguments(const std::vector<SgdRange>& stepped) {
        ranges = stepped;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            if (i == 1) continue;
            const auto place = static_cast<std::size_t>(ranges[i].begin + kShift);
            ranges[i].working_copy = working.as<std::byte>() + place * size_of(working.dtype());
        }
        SgdArguments arguments;
        arguments.parameters = parameters.as<float>();
        arguments.gradients = gradients.as<float>();
        arguments.momentum_buffer = momentum.as<float>();
        arguments.working_dtype = working.dtype();
        arguments.count = parameters.count();
        arguments.ranges = ranges.data();
        arguments.range_count = static_cast<std::int64_t>(ranges.size());
        arguments.momentum = 0.9f;
        arguments.weight_decay = 0.05f;
        arguments.numbers = &numbers;
        return arguments;
    }
};

void expect_agreement(const State& got, const State& twin) {
    EXPECT_TRUE(near(got.parameters, twin.parameters, 1e-6));
    EXPECT_TRUE(near(got.momentum, twin.momentum, 1e-6));
    EXPECT_TRUE(same(got.gradients, twin.gradients));
}

/// Working copies are the parameters, rounded, where the step went, and untouched elsewhere.
void expect_rounded(const State& state) {
    EXPECT_TRUE(state.working.fence_stands());
    Buffer expected(state.working.dtype(), state.working.count());
    for (const SgdRange& range : state.ranges) {
        if (range.working_copy == nullptr) continue;
        for (std::int64_t i = range.begin; i < range.end; ++i) {
            expected.set(i + kShift, state.parameters[i]);
        }
    }
    EXPECT_TRUE(same(state.working, expected));
}

class SgdKernel : public ForEachDtype {
protected:
    Contents contents_{13};
};

TEST_P(SgdKernel, AgreesWithItsTwin) {
    for (const std::int64_t count : {1, 7, 8, 9, 1000, 4101}) {
        for (const bool nesterov : {false, true}) {
            State got(GetParam(), count, contents_), twin = got;
            const std::vector<SgdRange> all{{0, count}};
            auto arguments = got.arguments(all), twin_arguments = twin.arguments(all);
            arguments.nesterov = twin_arguments.nesterov = nesterov;
            sgd(arguments, nullptr);
            reference::sgd(twin_arguments, nullptr);
            expect_agreement(got, twin);
            expect_rounded(got);
            expect_rounded(twin);
        }
    }
}

TEST_P(SgdKernel, KeepsToItsRanges) {
    const std::vector<SgdRange> ranges{{16, 17, false},  {24, 64, true},    {64, 131, false},
                                       {136, 136, true}, {136, 400, false}, {408, 500, true}};
    State got(GetParam(), 515, contents_), twin = got;
    const State before = got;
    sgd(got.arguments(ranges), nullptr);
    reference::sgd(twin.arguments(ranges), nullptr);
    expect_agreement(got, twin);
    expect_rounded(got);
    expect_rounded(twin);
    for (const std::int64_t i : {0, 15, 17, 23, 131, 135, 400, 407, 500, 514}) {
        EXPECT_EQ(got.parameters[i], before.parameters[i]) << i;
        EXPECT_EQ(got.momentum[i], before.momentum[i]) << i;
    }
}

TEST_P(SgdKernel, FindsEveryOneOfManyRanges) {
    std::vector<SgdRange> ranges;
    for (std::int64_t i = 0; i < 161; ++i) ranges.push_back({i * 48, i * 48 + 41, i % 3 == 0});
    State got(GetParam(), 161 * 48, contents_), twin = got;
    sgd(got.arguments(ranges), nullptr);
    reference::sgd(twin.arguments(ranges), nullptr);
    expect_agreement(got, twin);
    expect_rounded(got);
    expect_rounded(twin);
}

TEST_P(SgdKernel, ChangesNothingAfterAnOverflow) {
    State got(GetParam(), 1003, contents_);
    got.numbers.finite = 0;
    const State before = got;
    sgd(got.arguments({{0, 1003}}), nullptr);
    EXPECT_TRUE(same(got.parameters, before.parameters));
    EXPECT_TRUE(same(got.momentum, before.momentum));
    EXPECT_TRUE(same(got.working, before.working));
}

TEST_P(SgdKernel, TakesMoreThanItsGridAtOnce) {
    State got(GetParam(), 1056 * 256 * 8 + 1029, contents_), twin = got;
    sgd(got.arguments({}), nullptr);
    reference::sgd(twin.arguments({}), nullptr);
    expect_agreement(got, twin);
}

TEST(SgdTwin, IsTheStepOfTheCpuDevice) {
    Contents contents(14);
    const auto device = device::make_cpu_device({});
    for (const bool nesterov : {false, true}) {
        State got(DType::f16, 1003, contents), cpu = got;
        got.numbers.gradient_factor = 1;
        auto arguments = got.arguments({});
        arguments.nesterov = nesterov;
        device::SgdSteps steps(*device, {0.9f, 0.05f, nesterov, {}},
                               {{cpu.parameters.as<float>(), 1003},
                                {cpu.gradients.as<float>(), 1003},
                                {cpu.momentum.as<float>(), 1003},
                                nullptr});
        for (int step = 0; step < 3; ++step) {
            sgd(arguments, nullptr);
            steps.step(0.1);
        }
        expect_agreement(got, cpu);
    }
}

INSTANTIATE_TEST_SUITE_P(, SgdKernel, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
