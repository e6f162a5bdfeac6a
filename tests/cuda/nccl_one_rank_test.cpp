// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <hpcai/base/clock.hpp>
#include <hpcai/base/philox.hpp>
#include <hpcai/comm/nccl_reducer.hpp>

#include "cuda_on_cpu/array.hpp"
#include "device/cuda/cuda_device.hpp"
#include "support/lockstep_sum.hpp"

/// A group of one rank on a real GPU: the part of NCCL that a machine with one GPU can run.
/// tests/nccl_on_cpu has groups of several ranks, without NCCL.
namespace hpcai::comm {
namespace {

using device::Array;
using Format = std::optional<WireFormat>;  // empty: NCCL's all-reduce

constexpr std::size_t kTerms = 100000;
constexpr double kFinishSeconds = 20;

std::vector<float> terms_of(std::uint32_t step) {
    CounterStream random(32, RandomPurpose::test, step);
    std::vector<float> terms(kTerms);
    for (float& term : terms) term = static_cast<float>(random.normal());
    return terms;
}

class NcclOfOneRank : public testing::TestWithParam<Format> {
protected:
    void SetUp() override {
        int devices = 0;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
        gpu_ = device::cuda::make_cuda_device({.autotune = false});
        if (GetParam()) sums_ = {.format = *GetParam(), .node_of_rank = {0}};
        reducer_.reset(hpcai_make_nccl_reducer({.group = *alone_,
                                                .device = *gpu_,
                                                .all_reduce = sums_,
                                                .wait_seconds = 30,
                                                .start_seconds = 60,
                                                .finish_seconds = kFinishSeconds}));
    }

    std::unique_ptr<Communicator> alone_ = make_self_communicator();
    std::unique_ptr<device::Device> gpu_;
    std::optional<AllReduceOptions> sums_;
    std::unique_ptr<GradientReducer> reducer_;
};

/// A kernel doubles the terms before each all-reduce. In bf16, fp16 and int8 the all-reduce rounds
/// them, so an all-reduce that does not run or does not wait is detected. With one rank, an
/// all-reduce in fp32 or by NCCL changes nothing; only its start, recording and end are tested.
TEST_P(NcclOfOneRank, SumsInStepsAndInRecordingsAndEnds) {
    const Array<float> terms(*gpu_, terms_of(0)), values(*gpu_, std::vector<float>(kTerms));
    reducer_->prepare(values.span());
    const auto doubling = device::twice(*gpu_, terms, values.data());
    std::optional<tests::LockstepSum> sum_on_host;
    if (sums_) sum_on_host.emplace(*sums_, kTerms);
    const auto enqueue = [&] {
        doubling->run(ops::Pass::forward);
        reducer_->start_all_reduce(values.span())->wait();
    };
    std::uint32_t step = 0;
    const auto expect_sum = [&](const auto& run) {
        std::vector<float> want = terms_of(++step);
        gpu_->upload(terms.data(), std::as_bytes(std::span(want)));
        for (float& value : want) value *= 2;
        if (sum_on_host) want = sum_on_host->run({want}).front();
        run();
        reducer_->end_step();
        reducer_->check();
        EXPECT_EQ(values.read(), want) << "step " << step;
    };
    for (int i = 0; i < 2; ++i) expect_sum(enqueue);
    auto recording = gpu_->record(enqueue);
    for (int i = 0; i < 2; ++i) expect_sum([&] { recording->run(); });

    const auto seconds = reducer_->recorded_seconds();
    ASSERT_TRUE(seconds);
    EXPECT_GE(seconds->in_flight, 0);
    EXPECT_LT(seconds->in_flight, 1);
    recording.reset();
    const Stopwatch watch;
    reducer_.reset();
    EXPECT_LT(watch.seconds(), kFinishSeconds) << "NCCL did not end and was aborted";
}

INSTANTIATE_TEST_SUITE_P(, NcclOfOneRank,
                         testing::Values(Format{}, WireFormat::fp32, WireFormat::bf16,
                                         WireFormat::fp16, WireFormat::int8),
                         [](const auto& test) {
                             return test.param ? std::string(name_of(*test.param)) : "of_nccl";
                         });

}  // namespace
}  // namespace hpcai::comm
