// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/metrics/timing.hpp>

namespace hpcai::metrics {
namespace {

using ops::Pass;

class NoKernel final : public device::Kernel {
public:
    std::vector<Pass> passes() const override { return {}; }
    void bind(const device::KernelTensors&) override {}
    void run(Pass) override {}
};

/// Two ReLUs after each other, "first" and "second", and a clock that is set by hand.
class Timing : public testing::Test {
protected:
    Timing() : observer_(make_graph(), [this] { return seconds_; }) {}

    static graph::Graph make_graph() {
        graph::Graph graph;
        const tensor::Shape shape{1, 2, 2, 1};
        const auto input = graph.add_input("input", shape, tensor::DType::u8);
        const auto middle = graph.add_node("first", ops::Relu{shape}, {input});
        graph.add_node("second", ops::Relu{shape}, {middle});
        return graph;
    }

    void take(const std::string& name, Pass pass, device::Kernel& kernel, double seconds) {
        const graph::Step step{name, pass, &kernel, {}};
        observer_.before(step);
        seconds_ += seconds;
        observer_.after(step);
        seconds_ += 1000;  // between the kernels; nobody's time
    }

    static void expect(const OperationTime& time, const std::string& name, Pass pass,
                       double seconds) {
        EXPECT_EQ(time.name, name);
        EXPECT_EQ(time.pass, pass);
        EXPECT_NEAR(time.median_seconds, seconds, 1e-9) << name;
    }

    double seconds_ = 0;
    NoKernel first_, second_, sum_;
    TimingObserver observer_;
};

TEST_F(Timing, GivesTheMedianOfEachNodeAndPassInTheirOrder) {
    for (const double seconds : {5.0, 1.0, 3.0}) {
        take("second", Pass::forward, second_, 2);
        take("first", Pass::forward, first_, seconds);
        take("first", Pass::input_gradient, first_, 10 * seconds);
    }
    const auto times = observer_.by_node();
    ASSERT_EQ(times.size(), 3u);
    expect(times[0], "second", Pass::forward, 2);
    expect(times[1], "first", Pass::forward, 3);
    expect(times[2], "first", Pass::input_gradient, 30);
}

TEST_F(Timing, OfAnEvenNumberOfStepsIsTheMeanOfTheMiddleTwo) {
    for (const double seconds : {8.0, 1.0, 2.0, 4.0}) {
        take("first", Pass::forward, first_, seconds);
    }
    expect(observer_.by_node().at(0), "first", Pass::forward, 3);
}

TEST_F(Timing, OfAKindIsTheMedianOfItsSumsOverAStep) {
    // Sums 9, 9, 9: the median of the sums, not the sum (8 + 8) of the medians.
    for (const double seconds : {1.0, 8.0, 8.0}) {
        take("first", Pass::forward, first_, seconds);
        take("second", Pass::forward, second_, 9 - seconds);
    }
    const auto times = observer_.by_operation();
    ASSERT_EQ(times.size(), 1u);
    expect(times[0], "relu", Pass::forward, 9);
}

TEST_F(Timing, PutsTheLongestKindFirstAndNamesGradientSums) {
    take("first", Pass::forward, first_, 2);
    take("first.gradient", Pass::forward, sum_, 7);
    const auto times = observer_.by_operation();
    ASSERT_EQ(times.size(), 2u);
    expect(times[0], "gradient_sum", Pass::forward, 7);
    expect(times[1], "relu", Pass::forward, 2);
}

TEST_F(Timing, KeepsTwoSumsOfOneGradientApart) {
    take("first.gradient", Pass::forward, sum_, 1);
    take("first.gradient", Pass::forward, second_, 2);
    EXPECT_EQ(observer_.by_node().size(), 2u);
    expect(observer_.by_operation().at(0), "gradient_sum", Pass::forward, 3);
}

TEST_F(Timing, ForgetsTheWarmUp) {
    take("first", Pass::forward, first_, 100);
    observer_.clear();
    EXPECT_TRUE(observer_.by_node().empty());
    EXPECT_TRUE(observer_.by_operation().empty());
    take("first", Pass::forward, first_, 2);
    expect(observer_.by_node().at(0), "first", Pass::forward, 2);
}

}  // namespace
}  // namespace hpcai::metrics
