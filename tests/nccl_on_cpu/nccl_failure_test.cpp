// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "cuda_on_cpu/array.hpp"
#include "device/cuda/context.hpp"
#include "device/cuda/cuda_device.hpp"
#include "mpi/world.hpp"
#include "stand_in/nccl_failures.hpp"

/// A call of NCCL that fails on one rank, which notifies the others like a trainer.
namespace hpcai::comm {
namespace {

using device::Array;
using tests::NcclCall;

struct Failure {
    NcclCall call;
    std::string name;
    std::string words;
};

class FailureOfNccl : public testing::TestWithParam<Failure> {};

INSTANTIATE_TEST_SUITE_P(
    , FailureOfNccl,
    testing::Values(Failure{NcclCall::group_end, "GroupEnd", "unhandled system error"},
                    Failure{NcclCall::asking, "Asking", "internal error"},
                    Failure{NcclCall::async_error, "AsyncError",
                            "remote process exited or there was a network error"}),
    [](const auto& failure) { return failure.param.name; });

TEST_P(FailureOfNccl, EndsAllRanksOfTheGroupWithItsWords) {
    constexpr int kFailingStep = 1, kMaxSteps = 4;
    const auto group = mpi_tests::world().everyone.split(0, mpi_tests::world().everyone.rank());
    const auto gpu = device::cuda::make_cuda_device({.autotune = false});
    AllReduceOptions options;
    options.node_of_rank.resize(static_cast<std::size_t>(group->size()));
    const Array<float> values(*gpu, std::vector<float>(1000, 1.0F));
    const std::unique_ptr<GradientReducer> reducer(hpcai_make_nccl_reducer(
        {.group = *group, .device = *gpu, .all_reduce = options, .finish_seconds = 5}));
    reducer->prepare(values.span());
    int step = 0;
    try {
        for (; step < kMaxSteps; ++step) {
            if (group->rank() == 0 && step == kFailingStep) tests::fail_next(GetParam().call);
            reducer->start_all_reduce(values.span())->wait();
            reducer->end_step();
        }
        reducer->check();
        ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
        group->announce_failure(error);
        EXPECT_EQ(error.code(), ExitCode::internal);
        EXPECT_EQ(error.what(),
                  "enqueueing messages between GPUs: NCCL reports " + GetParam().words);
    }
    EXPECT_GE(step, kFailingStep);
}

}  // namespace
}  // namespace hpcai::comm
