// SPDX-License-Identifier: Apache-2.0
#include "kernels/reference/optimizer.hpp"

#include <functional>

#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/reference/trust_ratio.hpp"

namespace hpcai::kernels {
namespace {

constexpr std::int64_t kShift = 24;

/// The operands of a step.
struct State {
    Buffer parameters, gradients, first, second, working;
    std::vector<UpdateRange> ranges;
    std::vector<float> ratios;
    ops::StepScalars numbers{.learning_rate = 0.1f, .gradient_factor = 1.0f / 64, .taken_steps = 2};

    State(DType dtype, std::int64_t count, Contents& contents)
        : parameters(contents.normal(DType::f32, count)),
          gradients(contents.normal(DType::f32, count)),
          first(contents.normal(DType::f32, count)),
          second(contents.normal(DType::f32, count)),
          working(dtype, count + kShift) {
        for (std::int64_t i = 0; i < count; ++i) {  // means of squares, whose roots are divisors
            first.set(i, std::abs(first[i]) + 0.25);
            second.set(i, std::abs(second[i]) + 0.25);
        }
    }

    /// Returns arguments with copies of all ranges except the second, at an offset from their usual
    /// place.
    UpdateArguments arguments(const std::vector<UpdateRange>& stepped) {
        ranges = stepped;
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            ratios.push_back(1.0f / static_cast<float>(i + 1));
            if (i == 1) continue;
            const auto place = static_cast<std::size_t>(ranges[i].begin + kShift);
            ranges[i].working_copy = working.as<std::byte>() + place * size_of(working.dtype());
        }
        UpdateArguments arguments;
        arguments.parameters = parameters.as<float>();
        arguments.gradients = gradients.as<float>();
        arguments.states[0] = first.as<float>();
        arguments.states[1] = second.as<float>();
        arguments.working_dtype = working.dtype();
        arguments.count = parameters.count();
        arguments.ranges = ranges.data();
        arguments.range_count = static_cast<std::int64_t>(ranges.size());
        arguments.weight_decay = 0.05f;
        arguments.scalars = &numbers;
        if (!ranges.empty()) arguments.trust_ratios = ratios.data();
        return arguments;
    }
};

void expect_agreement(const State& got, const State& twin) {
    EXPECT_TRUE(near(got.parameters, twin.parameters, 1e-6));
    EXPECT_TRUE(near(got.first, twin.first, 1e-6));
    EXPECT_TRUE(near(got.second, twin.second, 1e-6));
    EXPECT_TRUE(same(got.gradients, twin.gradients));
}

/// Expects that working copies are the rounded parameters where the step updated them, and
/// unchanged elsewhere.
void expect_rounded(const State& state) {
    EXPECT_TRUE(state.working.guard_is_intact());
    Buffer expected(state.working.dtype(), state.working.count());
    for (const UpdateRange& range : state.ranges) {
        if (range.working_copy == nullptr) continue;
        for (std::int64_t i = range.begin; i < range.end; ++i) {
            expected.set(i + kShift, state.parameters[i]);
        }
    }
    EXPECT_TRUE(same(state.working, expected));
}

/// A step and its naive reference.
struct Steps {
    std::function<void(const UpdateArguments&)> kernel, twin;
};

template <typename Rule>
Steps steps_of(void (*kernel)(const UpdateArguments&, const Rule&, Stream),
               void (*twin)(const UpdateArguments&, const Rule&, Stream), const Rule& rule) {
    return {[kernel, rule](const UpdateArguments& of) { kernel(of, rule, nullptr); },
            [twin, rule](const UpdateArguments& of) { twin(of, rule, nullptr); }};
}

/// Every rule with every setting that changes a formula.
std::vector<Steps> every_step() {
    using ops::AdaGrad, ops::Adam, ops::Lamb, ops::Lars, ops::Sgd;
    std::vector<Steps> all;
    for (const bool nesterov : {false, true}) {
        for (const bool corrected : {false, true}) {
            all.push_back(steps_of(sgd_step, reference::sgd_step, Sgd{0.9f, nesterov, corrected}));
            all.push_back(
                steps_of(lars_step, reference::lars_step, Lars{0.9f, nesterov, corrected}));
        }
    }
    all.push_back(steps_of(lamb_step, reference::lamb_step, Lamb{}));
    all.push_back(steps_of(adam_step, reference::adam_step, Adam{}));
    all.push_back(steps_of(adam_step, reference::adam_step, Adam{0.5, 0.75, 0.125, true}));
    all.push_back(steps_of(adagrad_step, reference::adagrad_step, AdaGrad{0.125f}));
    return all;
}

class OptimizerKernels : public ForEachDtype {
protected:
    void expect_twins(std::int64_t count, const std::vector<UpdateRange>& ranges) {
        for (const Steps& steps : every_step()) {
            State got(GetParam(), count, contents_), twin = got;
            steps.kernel(got.arguments(ranges));
            steps.twin(twin.arguments(ranges));
            expect_agreement(got, twin);
            expect_rounded(got);
            expect_rounded(twin);
        }
    }

    Contents contents_{13};
};

TEST_P(OptimizerKernels, AgreeWithTheirTwins) {
    for (const std::int64_t count : {1, 7, 8, 9, 1000, 4101}) expect_twins(count, {{0, count}});
}

TEST_P(OptimizerKernels, RoundParametersWhereThereIsNoMaster) {
    for (const Steps& steps : every_step()) {
        State got(GetParam(), 1000, contents_), twin = got, with_master = got;
        UpdateArguments arguments = got.arguments({{0, 1000}});
        steps.kernel(with_master.arguments({{0, 1000}}));
        arguments.rounds_parameters = true;
        steps.kernel(arguments);
        arguments = twin.arguments({{0, 1000}});
        arguments.rounds_parameters = true;
        steps.twin(arguments);
        Buffer rounded(GetParam(), 1000);
        for (std::int64_t i = 0; i < 1000; ++i) {
            rounded.set(i, with_master.parameters[i]);
            ASSERT_EQ(got.parameters[i], rounded[i]) << i;
        }
        // A sum between two numbers may round to either.
        EXPECT_TRUE(near(twin.parameters, got.parameters, 2 * tolerance_of(GetParam())));
        EXPECT_TRUE(same(got.first, with_master.first));
        expect_rounded(got);
        expect_rounded(twin);
    }
}

const std::vector<UpdateRange> kRanges{{16, 17, false},        {24, 64, true, true},
                                       {64, 131, false, true}, {136, 136, true},
                                       {136, 400, false},      {408, 500, true, true}};

TEST_P(OptimizerKernels, KeepToTheirRanges) {
    expect_twins(515, kRanges);
    for (const Steps& steps : every_step()) {
        State got(GetParam(), 515, contents_);
        const State before = got;
        steps.kernel(got.arguments(kRanges));
        for (const std::int64_t i : {0, 15, 17, 23, 131, 135, 400, 407, 500, 514}) {
            EXPECT_EQ(got.parameters[i], before.parameters[i]) << i;
            EXPECT_EQ(got.first[i], before.first[i]) << i;
            EXPECT_EQ(got.second[i], before.second[i]) << i;
        }
    }
}

TEST_P(OptimizerKernels, FindEveryOneOfManyRanges) {
    std::vector<UpdateRange> ranges;
    for (std::int64_t i = 0; i < 161; ++i) ranges.push_back({i * 48, i * 48 + 41, i % 3 == 0});
    expect_twins(161 * 48, ranges);
}

TEST_P(OptimizerKernels, ChangeNothingAfterAnOverflow) {
    for (const Steps& steps : every_step()) {
        State got(GetParam(), 1003, contents_);
        got.numbers.finite = 0;
        const State before = got;
        steps.kernel(got.arguments({{0, 1003}}));
        EXPECT_TRUE(same(got.parameters, before.parameters));
        EXPECT_TRUE(same(got.first, before.first));
        EXPECT_TRUE(same(got.second, before.second));
        EXPECT_TRUE(same(got.working, before.working));
    }
}

TEST_P(OptimizerKernels, TakeMoreThanTheirGridAtOnce) {
    State got(GetParam(), 1056 * 256 * 8 + 1029, contents_), twin = got;
    const ops::Sgd rule{0.9f};
    sgd_step(got.arguments({}), rule, nullptr);
    reference::sgd_step(twin.arguments({}), rule, nullptr);
    expect_agreement(got, twin);
}

/// The parts of ranges, at most `length` long, and the sums of their squares.
struct Parts {
    std::vector<UpdatePart> parts;
    std::vector<std::int64_t> first_part{0};
    std::vector<double> sums;
    std::vector<float> ratios;

    Parts(const std::vector<UpdateRange>& ranges, std::int64_t length) : ratios(ranges.size()) {
        for (std::size_t index = 0; index < ranges.size(); ++index) {
            for (std::int64_t at = ranges[index].begin; at < ranges[index].end; at += length) {
                parts.push_back({static_cast<std::int64_t>(index), at,
                                 std::min(at + length, ranges[index].end)});
            }
            first_part.push_back(static_cast<std::int64_t>(parts.size()));
        }
        sums.resize(2 * parts.size());
    }
    UpdateParts view() {
        return {parts.data(), static_cast<std::int64_t>(parts.size()), first_part.data(),
                sums.data()};
    }
};

class TrustRatioKernels : public testing::Test {
protected:
    static void expect_near(const Parts& got, const Parts& twin) {
        for (std::size_t i = 0; i < got.sums.size(); ++i) {
            EXPECT_NEAR(got.sums[i], twin.sums[i], 1e-6 * twin.sums[i]) << i;
        }
        for (std::size_t i = 0; i < got.ratios.size(); ++i) {
            EXPECT_NEAR(got.ratios[i], twin.ratios[i], 1e-6 * twin.ratios[i]) << i;
        }
    }

    Contents contents_{15};
};

TEST_F(TrustRatioKernels, OfLarsAgreeWithTheirTwins) {
    const std::vector<UpdateRange> large{{0, 50003, true, true}};
    for (const auto& ranges : {kRanges, large}) {
        State state(DType::f32, ranges.back().end + 15, contents_);
        for (std::int64_t i = 408; i < 416; ++i) state.gradients.set(i, 0);
        UpdateArguments arguments = state.arguments(ranges);
        for (const ops::Lars& rule :
             {ops::Lars{0.9f}, ops::Lars{0.9f, false, false, 0.25f, 0.5f}}) {
            Parts got(ranges, 1 << 13), twin(ranges, 1 << 13);
            square_sums(arguments, got.view(), nullptr);
            lars_ratios(arguments, rule, got.view(), got.ratios.data(), nullptr);
            reference::square_sums(arguments, twin.view(), nullptr);
            reference::lars_ratios(arguments, rule, twin.view(), twin.ratios.data(), nullptr);
            expect_near(got, twin);
            EXPECT_NE(got.ratios.back(), 1);
            for (std::size_t i = 0; i < ranges.size(); ++i) {
                if (ranges[i].has_trust_ratio) continue;
                EXPECT_EQ(got.ratios[i], 1) << i;
            }
        }
    }
}

TEST_F(TrustRatioKernels, OfLambAgreeWithTheirTwins) {
    const std::vector<UpdateRange> large{{0, 50003, true, true}};
    for (const auto& ranges : {kRanges, large}) {
        const ops::Lamb rule{0.5, 0.75, 0.125};
        State state(DType::f32, ranges.back().end + 15, contents_), twin_state = state;
        const State before = state;
        Parts got(ranges, 1 << 13), twin(ranges, 1 << 13);
        const UpdateArguments arguments = state.arguments(ranges);
        lamb_moments(arguments, rule, got.view(), nullptr);
        lamb_ratios(arguments, got.view(), got.ratios.data(), nullptr);
        const UpdateArguments of_twin = twin_state.arguments(ranges);
        reference::lamb_moments(of_twin, rule, twin.view(), nullptr);
        reference::lamb_ratios(of_twin, twin.view(), twin.ratios.data(), nullptr);
        expect_near(got, twin);
        expect_agreement(state, twin_state);
        EXPECT_TRUE(same(state.parameters, before.parameters));
        EXPECT_NE(got.ratios.back(), 1);
    }
}

TEST_F(TrustRatioKernels, AreOneWhereANormIsZero) {
    const std::vector<UpdateRange> ranges{{0, 100, true, true}, {104, 200, true, true}};
    State state(DType::f32, 200, contents_);
    for (std::int64_t i = 0; i < 100; ++i) state.gradients.set(i, 0);
    for (std::int64_t i = 104; i < 200; ++i) state.parameters.set(i, 0);
    const UpdateArguments arguments = state.arguments(ranges);
    Parts parts(ranges, 64);
    square_sums(arguments, parts.view(), nullptr);
    lars_ratios(arguments, ops::Lars{0.9f}, parts.view(), parts.ratios.data(), nullptr);
    EXPECT_EQ(parts.ratios, (std::vector<float>{1, 1}));
    lamb_ratios(arguments, parts.view(), parts.ratios.data(), nullptr);
    EXPECT_EQ(parts.ratios, (std::vector<float>{1, 1}));
}

TEST_F(TrustRatioKernels, OfLambMoveNothingAfterAnOverflow) {
    State state(DType::f32, 515, contents_);
    state.numbers.finite = 0;
    const State before = state;
    Parts parts(kRanges, 64);
    lamb_moments(state.arguments(kRanges), ops::Lamb{}, parts.view(), nullptr);
    EXPECT_TRUE(same(state.first, before.first));
    EXPECT_TRUE(same(state.second, before.second));
}

INSTANTIATE_TEST_SUITE_P(, OptimizerKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
