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

/// Two nodes, "first" and "second", and a clock that the test sets.
class Timing : public testing::Test {
protected:
    Timing() : observer_([this] { return seconds_; }) {}

    void take(const std::string& name, Pass pass, device::Kernel& kernel, double seconds) {
        const graph::KernelCall call{name, pass, &kernel, {}};
        observer_.before(call);
        seconds_ += seconds;
        observer_.after(call);
        seconds_ += 1000;  // between the kernels, so it does not count
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
    const auto times = observer_.times_by_kernel();
    ASSERT_EQ(times.size(), 3u);
    expect(times[0], "second", Pass::forward, 2);
    expect(times[1], "first", Pass::forward, 3);
    expect(times[2], "first", Pass::input_gradient, 30);
}

TEST_F(Timing, OfAnEvenNumberOfStepsIsTheMeanOfTheMiddleTwo) {
    for (const double seconds : {8.0, 1.0, 2.0, 4.0}) {
        take("first", Pass::forward, first_, seconds);
    }
    expect(observer_.times_by_kernel().at(0), "first", Pass::forward, 3);
}

TEST_F(Timing, DistinguishesTwoSumsOfOneGradient) {
    take("first.gradient", Pass::forward, sum_, 1);
    take("first.gradient", Pass::forward, second_, 2);
    EXPECT_EQ(observer_.times_by_kernel().size(), 2u);
}

TEST_F(Timing, ForgetsTheWarmUp) {
    take("first", Pass::forward, first_, 100);
    observer_.clear();
    EXPECT_TRUE(observer_.times_by_kernel().empty());
    take("first", Pass::forward, first_, 2);
    expect(observer_.times_by_kernel().at(0), "first", Pass::forward, 2);
}

}  // namespace
}  // namespace hpcai::metrics
