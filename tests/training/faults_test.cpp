// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <csignal>

#include <gmock/gmock.h>

#include <hpcai/base/error.hpp>
#include <hpcai/training/faults.hpp>

#include "networks.hpp"

/// This program always has fault injection, whatever HPCAI500_FAULTS is.
namespace hpcai::training {
namespace {

using testing::HasSubstr;

constexpr int kRows = 8;

std::string refusal_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::usage);
        return error.what();
    }
    return "";
}

TEST(Faults, AreReadFromTheirNames) {
    EXPECT_TRUE(faults_are_built_in());
    EXPECT_TRUE(read_faults("").empty());
    const std::vector<Fault> faults = read_faults("kill@1:0:5,nan@0:3:17");
    EXPECT_EQ(faults, (std::vector<Fault>{{"kill", 1, 0, 5}, {"nan", 0, 3, 17}}));
    EXPECT_EQ(describe_faults(faults), "kill@1:0:5, nan@0:3:17");
    EXPECT_EQ(describe_faults({}), "none");
}

TEST(Faults, OfAnotherFormAreRejectedWithTheLegalForm) {
    for (const char* text : {"kill",
                             "kill@",
                             "kill@1",
                             "kill@1:0",
                             "kill@1:0:",
                             "kill@:0:5",
                             "kill@1::5",
                             "kill@1:0:5:6",
                             "kill@1:0:x",
                             "kill@-1:0:5",
                             "kill@1:0:-5",
                             "kill@1:0: 5",
                             "unknown@1:0:5",
                             "@1:0:5",
                             "KILL@1:0:5",
                             "kill@1:0:5,",
                             ",kill@1:0:5",
                             "kill@1:0:5,,nan@0:0:0",
                             "kill@4294967296:0:5",
                             "kill@1:0:9223372036854775808"}) {
        const std::string why = refusal_of([&] { read_faults(text); });
        EXPECT_THAT(why, HasSubstr("HPCAI500_INJECT: expected kind@group:rank:step")) << text;
        EXPECT_THAT(why, HasSubstr("kill, segv, exit, abort, stop, hang, throw, loader, nan, "
                                   "overflow, flip, slow"));
    }
    EXPECT_THAT(refusal_of([] { read_faults("kill@1:0:5,unknown@1:0:5"); }),
                HasSubstr("got 'unknown@1:0:5'"));
}

TEST(Faults, OfGroupsAndRanksThatAreNotThereAreRejected) {
    check_faults(read_faults("kill@3:1:5"), 4, 2);
    EXPECT_EQ(refusal_of([] { check_faults(read_faults("kill@4:1:5"), 4, 2); }),
              "HPCAI500_INJECT: expected a group from 0 to 3 and a rank in it from 0 to 1, got "
              "'kill@4:1:5'");
    EXPECT_THAT(refusal_of([] { check_faults(read_faults("kill@3:2:5"), 4, 2); }),
                HasSubstr("got 'kill@3:2:5'"));
}

/// Rank 0 of group 1, which has no other rank.
class InjectedFault : public testing::Test {
protected:
    InjectedFault() { initialize(graph_, config_.run.seed, 0, store_); }

    std::unique_ptr<FaultInjector> injector(const std::string& faults) {
        return make_fault_injector({read_faults(faults), 1, 0, *device_, store_});
    }
    /// Trains an epoch; counts the reported steps in `told_`.
    EpochReport train(const std::string& faults, std::int64_t earlier_steps = 0) {
        graph::Network network(graph_, *device_, store_, {device::Mode::training});
        const auto reducer = comm::make_mpi_reducer(*ranks_);
        TrainerSetup setup{config_, network, kSteps, *reducer};
        setup.faults = read_faults(faults);
        setup.group = 1;
        setup.earlier_steps = earlier_steps;
        Trainer trainer(setup, *device_, store_, *ranks_);
        ToySource source(kRows, kSteps);
        return trainer.train_epoch(0, source, [&](const StepReport& step) { told_ = step.step; });
    }
    std::string failure_of(const std::string& faults) {
        try {
            train(faults);
        } catch (const std::exception& error) {
            return error.what();
        }
        return "";
    }

    static constexpr std::int64_t kSteps = 6;
    config::Config config_ = small_config(kRows, 1);
    graph::Graph graph_ = small_graph(kRows);
    std::unique_ptr<device::Device> device_ = device::make_cpu_device({});
    graph::ParameterStore store_{graph_, *device_};
    std::unique_ptr<comm::Communicator> ranks_ = comm::make_self_communicator();
    std::int64_t told_ = 0;
};

TEST_F(InjectedFault, IsNoneWhereOthersAreMeant) {
    EXPECT_EQ(injector(""), nullptr);
    EXPECT_EQ(injector("kill@0:0:0"), nullptr);
    const auto other_rank = injector("kill@1:1:0");
    ASSERT_NE(other_rank, nullptr);
    other_rank->begin_step(0);
    EXPECT_FALSE(other_rank->before_all_reduce());
    EXPECT_TRUE(injector("nan@1:1:0")->before_all_reduce())
        << "no rank of the group records its steps";
}

TEST_F(InjectedFault, CountsTheStepsOfEarlierModels) {
    EXPECT_NO_THROW(train("throw@1:0:106"));
    EXPECT_NO_THROW(train("throw@1:0:106", 100));
    EXPECT_THROW(train("throw@1:0:105", 100), Error);
    EXPECT_EQ(told_, 5);
}

TEST_F(InjectedFault, EndsTheProcessInItsStep) {
    const auto strike = [&](const char* fault) {
        const auto mine = injector(fault);
        mine->begin_step(4);
        _exit(77);  // the fault is not due yet
    };
    EXPECT_EXIT(strike("kill@1:0:4"), testing::KilledBySignal(SIGKILL), "");
    EXPECT_EXIT(strike("kill@1:0:3"), testing::KilledBySignal(SIGKILL), "injected in step 4");
    EXPECT_EXIT(strike("kill@1:0:5"), testing::ExitedWithCode(77), "");
    EXPECT_EXIT(strike("segv@1:0:4"), testing::KilledBySignal(SIGSEGV), "");
    EXPECT_EXIT(strike("abort@1:0:4"), testing::KilledBySignal(SIGABRT), "");
    EXPECT_EXIT(strike("exit@1:0:4"), testing::ExitedWithCode(0), "");
}

TEST_F(InjectedFault, MakesAStepThrow) {
    EXPECT_THAT(failure_of("throw@1:0:2"), HasSubstr("out of host memory; a run needs less"));
    EXPECT_EQ(told_, 2);
}

TEST_F(InjectedFault, SpoilsAGradient) {
    EXPECT_THAT(failure_of("nan@1:0:2"), HasSubstr("training diverged: the gradient of step"));
    EXPECT_LE(told_, 3) << "the loss of the next step at the latest";
    EXPECT_GE(told_, 2);
}

TEST_F(InjectedFault, SpoilsOneBucketOfOneStep) {
    const auto mine = injector("overflow@1:0:1");
    const auto before_all_reduce = mine->before_all_reduce();
    const auto infinities = [&] {
        const std::vector<float> values = store_.read(store_.gradients());
        return std::ranges::count_if(values, [](float value) { return std::isinf(value); });
    };
    mine->begin_step(0);
    before_all_reduce({0, 4});
    EXPECT_EQ(infinities(), 0);
    mine->begin_step(1);
    before_all_reduce({store_.gradients().size(), store_.gradients().size() + 1});
    EXPECT_EQ(infinities(), 0) << "the status is no gradient";
    before_all_reduce({4, 8});
    before_all_reduce({0, 4});
    EXPECT_EQ(infinities(), 1);
    EXPECT_TRUE(std::isinf(store_.read(store_.gradients())[4]));
}

TEST_F(InjectedFault, FlipsOneBitOfAParameterOnce) {
    const std::vector<float> before = store_.read(store_.parameters());
    const auto mine = injector("flip@1:0:1");
    mine->begin_step(0);
    EXPECT_EQ(store_.read(store_.parameters()), before);
    mine->begin_step(1);
    mine->begin_step(2);
    const std::vector<float> after = store_.read(store_.parameters());
    int bits = 0;
    for (std::size_t index = 0; index < after.size(); ++index) {
        bits += std::popcount(std::bit_cast<std::uint32_t>(before[index]) ^
                              std::bit_cast<std::uint32_t>(after[index]));
    }
    EXPECT_EQ(bits, 1);
}

TEST_F(InjectedFault, LetsASlowRankFinish) {
    EXPECT_EQ(train("slow@1:0:1").steps, kSteps);
    EXPECT_EQ(told_, kSteps);
}

TEST(LoaderFault, IsThrownForItsBatchAndThoseAfterIt) {
    const std::vector<Fault> faults = read_faults("kill@1:0:0,loader@1:0:7,loader@0:0:0");
    EXPECT_FALSE(make_loader_fault(faults, 1, 1, 5));
    const auto strike = make_loader_fault(faults, 1, 0, 5);
    ASSERT_TRUE(strike);
    strike(0, 4);
    strike(1, 1);
    EXPECT_THROW(strike(1, 2), std::runtime_error);
    EXPECT_THROW(strike(2, 0), std::runtime_error);
}

}  // namespace
}  // namespace hpcai::training
