// SPDX-License-Identifier: Apache-2.0
#include "device/cpu/loops/loops.hpp"

#include <cstring>
#include <functional>

#include <gtest/gtest.h>

#include <hpcai/reference/naive_random.hpp>

namespace hpcai::device::cpu {
namespace {

using tensor::DType;

struct InstructionSet {
    const char* name;
    const SimdKernels& (*table)();
    bool present;
};

std::vector<InstructionSet> instruction_sets() {
    __builtin_cpu_init();
    return {{"avx2", avx2::table, __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
            {"avx512", avx512::table,
             __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")}};
}

struct LoopsCase {
    InstructionSet set;
    int lanes;
    DType dtype;
};

std::vector<LoopsCase> cases() {
    std::vector<LoopsCase> all;
    for (const auto& set : instruction_sets()) {
        for (const int lanes : {16, 8, 1}) {
            for (const DType dtype : {DType::f32, DType::bf16}) all.push_back({set, lanes, dtype});
        }
    }
    return all;
}

/// Compares the loops of one instruction set with the baseline on tiles whose pixels are not
/// adjacent.
class LoopsOf : public testing::TestWithParam<LoopsCase> {
protected:
    static constexpr std::int64_t kPixels = 611;  // more than two blocks of the sums, and odd

    void SetUp() override {
        if (!GetParam().set.present) GTEST_SKIP() << "this CPU has no " << GetParam().set.name;
    }

    int lanes() const { return GetParam().lanes; }
    Tile tile() const { return {kPixels, lanes() + 3, lanes(), GetParam().dtype}; }
    std::size_t elements() const { return static_cast<std::size_t>(kPixels * tile().stride); }

    std::vector<float> numbers(std::size_t count, double mean = 0) {
        const auto tensor = random_.normal({static_cast<std::int64_t>(count)}, mean);
        return {tensor.values.begin(), tensor.values.end()};
    }
    std::vector<float> channel_numbers(double mean = 0) {
        return numbers(static_cast<std::size_t>(lanes()), mean);
    }
    std::vector<std::byte> values() {
        const auto floats = numbers(elements());
        std::vector<std::byte> bytes(elements() * size_of(GetParam().dtype));
        baseline::table().store_floats({tile().stride * kPixels, 1, 1, GetParam().dtype},
                                       floats.data(), bytes.data());
        return bytes;
    }
    std::vector<float> floats_of(const std::vector<std::byte>& bytes) const {
        std::vector<float> floats(elements());
        baseline::table().load_floats({tile().stride * kPixels, 1, 1, GetParam().dtype},
                                      bytes.data(), floats.data());
        return floats;
    }

    /// Calls `run` with both tables; each call returns floats.
    void expect_same(double tolerance,
                     const std::function<std::vector<float>(const SimdKernels&)>& run) const {
        const auto want = run(baseline::table()), got = run(GetParam().set.table());
        ASSERT_EQ(got.size(), want.size());
        for (std::size_t i = 0; i < want.size(); ++i) {
            ASSERT_NEAR(got[i], want[i], tolerance * std::max(1.0f, std::abs(want[i]))) << i;
        }
    }
    /// The tolerance of one rounding of a stored number; sums of 611 numbers stay fp32.
    double stored() const { return GetParam().dtype == DType::f32 ? 1e-6 : 0x1p-7; }
    static constexpr double kSummed = 2e-5;

    static std::vector<float> join(std::vector<float> a, const std::vector<float>& b) {
        a.insert(a.end(), b.begin(), b.end());
        return a;
    }

private:
    naive::Random random_{DType::f32, 10};
};

TEST_P(LoopsOf, SumStatisticsEqually) {
    const auto x = values();
    const auto pivot = channel_numbers();
    expect_same(kSummed, [&](const SimdKernels& loops) {
        std::vector<float> sum(pivot.size()), squares(pivot.size());
        loops.statistics(tile(), {x.data(), pivot.data(), sum.data(), squares.data()});
        return join(sum, squares);
    });
}

TEST_P(LoopsOf, ApplyEqually) {
    const auto x = values(), residual = values();
    const auto scale = channel_numbers(), shift = channel_numbers();
    for (const bool relu : {false, true}) {
        for (const bool add : {false, true}) {
            expect_same(stored(), [&](const SimdKernels& loops) {
                std::vector<std::byte> y(x.size());
                loops.apply(tile(), {x.data(), add ? residual.data() : nullptr, y.data(),
                                     scale.data(), shift.data(), relu});
                return floats_of(y);
            });
        }
    }
}

TEST_P(LoopsOf, SumAndApplyGradientsEqually) {
    const auto x = values(), y = values(), dy0 = values(), dy1 = values();
    const auto scale = channel_numbers(), shift = channel_numbers(), mean = channel_numbers();
    for (const bool two : {false, true}) {
        for (const int gate : {0, 1, 2}) {
            const GradientSource source{dy0.data(),   two ? dy1.data() : nullptr,
                                        x.data(),     gate == 2 ? y.data() : nullptr,
                                        scale.data(), shift.data(),
                                        gate > 0};
            expect_same(kSummed, [&](const SimdKernels& loops) {
                std::vector<float> sum(mean.size()), products(mean.size());
                std::vector<std::byte> masked(x.size());
                loops.gradient_sums(tile(), {source, two ? masked.data() : nullptr, mean.data(),
                                             sum.data(), products.data()});
                return join(join(sum, products), floats_of(masked));
            });
            expect_same(stored(), [&](const SimdKernels& loops) {
                std::vector<std::byte> dx(x.size());
                loops.gradient_apply(tile(),
                                     {source, dx.data(), scale.data(), shift.data(), mean.data()});
                return floats_of(dx);
            });
        }
    }
}

TEST_P(LoopsOf, SumAndFillPixelsEqually) {
    const auto x = values();
    const auto value = channel_numbers();
    expect_same(kSummed, [&](const SimdKernels& loops) {
        std::vector<float> sum(value.size());
        std::vector<std::byte> filled(x.size());
        loops.pixel_sum(tile(), x.data(), sum.data());
        loops.pixel_fill(tile(), value.data(), filled.data());
        return join(sum, floats_of(filled));
    });
}

TEST_P(LoopsOf, StoreAndLoadFloatsEquallyToTheBit) {
    const auto rows = numbers(static_cast<std::size_t>(kPixels * lanes()), 1e3);
    expect_same(0, [&](const SimdKernels& loops) {
        std::vector<std::byte> x(elements() * size_of(GetParam().dtype));
        std::vector<float> back(rows.size());
        loops.store_floats(tile(), rows.data(), x.data());
        loops.load_floats(tile(), x.data(), back.data());
        return join(floats_of(x), back);
    });
}

TEST_P(LoopsOf, StepTheOptimizersEqually) {
    const auto w = numbers(1003), g = numbers(1003), v = numbers(1003);
    const MomentCoefficients moments{0.5f, 1e-2f, 0.9f, 0.1f, 0.75f, 0.25f};
    const AdamCoefficients adam{moments, 0.99f, 0.1f, 1.5f, 0.01f};
    const LambCoefficients lamb{moments, 2, 1.5f, 0.01f, 1e-2f};
    using Step = std::function<SquareSums(const SimdKernels&, const StepSpan&)>;
    const auto silent = [](const auto& step) {
        return Step([step](const SimdKernels& loops, const StepSpan& span) {
            step(loops, span);
            return SquareSums{};
        });
    };
    const std::vector<Step> steps{
        silent([](auto& loops, auto& at) {
            loops.sgd(at, {0.1f, 0.5f, 0.9f, 1e-2f, false});
        }),
        silent([](auto& loops, auto& at) {
            loops.sgd(at, {0.1f, 0.5f, 0.9f, 1e-2f, true});
        }),
        silent([](auto& loops, auto& at) {
            loops.momentum_step(at, {0.5f, 0.9f, 1e-2f, true, 0.25f, 0.5f});
        }),
        silent([&](auto& loops, auto& at) { loops.adam(at, adam); }),
        silent([](auto& loops, auto& at) {
            loops.adagrad(at, {0.5f, 1e-2f, 0.1f, 0.01f});
        }),
        [](const SimdKernels& loops, const StepSpan& at) { return loops.square_sums(at); },
        [&](const SimdKernels& loops, const StepSpan& at) { return loops.lamb_moments(at, lamb); },
        silent([&](auto& loops, auto& at) { loops.lamb_step(at, lamb, 0.25f); })};
    for (const Step& step : steps) {
        expect_same(1e-6, [&](const SimdKernels& loops) {
            auto parameters = w, first = v, second = g;
            for (float& value : second) value *= value;
            for (float& value : first) value = std::abs(value);  // AdaGrad's state is not negative
            const SquareSums sums =
                step(loops, {parameters.data(), g.data(), first.data(), second.data(), w.size()});
            const std::vector<float> of_sums{static_cast<float>(sums.parameters),
                                             static_cast<float>(sums.others)};
            return join(join(parameters, first), join(second, of_sums));
        });
    }
}

INSTANTIATE_TEST_SUITE_P(Cpu, LoopsOf, testing::ValuesIn(cases()), [](const auto& test) {
    return std::string(test.param.set.name) + "_" + std::to_string(test.param.lanes) + "_lanes_" +
           std::string(name_of(test.param.dtype));
});

TEST(Bf16, RoundsToNearestEvenInEveryInstructionSet) {
    const std::vector<float> values{1 + 0x1p-8f,   1 + 3 * 0x1p-8f, -1 - 0x1p-8f,
                                    1 + 0x1.8p-8f, 1 + 0x1p-9f,     1,
                                    -3.14159f,     0x1.fffp-20f};
    auto sets = instruction_sets();
    sets.push_back({"baseline", baseline::table, true});
    for (const auto& set : sets) {
        if (!set.present) continue;
        for (const int lanes : {8, 1}) {
            std::vector<float> back(8);
            std::vector<std::byte> bytes(16);
            const Tile tile{8 / lanes, lanes, lanes, DType::bf16};
            set.table().store_floats(tile, values.data(), bytes.data());
            set.table().load_floats(tile, bytes.data(), back.data());
            for (std::size_t i = 0; i < 8; ++i) {
                EXPECT_EQ(back[i], naive::round_to(DType::bf16, values[i])) << set.name;
            }
        }
    }
}

TEST(Bf16, StaysNaNAndInfinite) {
    const std::vector<float> values{std::numeric_limits<float>::infinity(),
                                    -std::numeric_limits<float>::infinity(),
                                    std::numeric_limits<float>::quiet_NaN(), 3.3e38f};
    std::vector<float> back(4);
    std::vector<std::byte> bytes(8);
    const Tile tile{4, 1, 1, DType::bf16};
    loops_for_this_cpu().store_floats(tile, values.data(), bytes.data());
    loops_for_this_cpu().load_floats(tile, bytes.data(), back.data());
    EXPECT_EQ(back[0], values[0]);
    EXPECT_EQ(back[1], values[1]);
    EXPECT_TRUE(std::isnan(back[2]));
    EXPECT_EQ(back[3], naive::round_to(DType::bf16, values[3]));
}

}  // namespace
}  // namespace hpcai::device::cpu
