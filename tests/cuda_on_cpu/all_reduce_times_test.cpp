// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/all_reduce_times.hpp"

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "device/cuda/context.hpp"
#include "device/cuda/cuda_device.hpp"
#include "simt/streams.hpp"

namespace hpcai::comm {
namespace {

using device::cuda::OwnedEvent;
using device::cuda::OwnedStream;
using device::cuda::record_work;

constexpr double kTolerance = 20;  // seconds that the test may take in real time

/// The streams of a device and of its all-reduces, as in NcclReducer. The test sets the duration of
/// their work.
class RecordedSums : public testing::TestWithParam<simt::Order> {
protected:
    RecordedSums() { simt::set_order(GetParam()); }
    ~RecordedSums() override { simt::set_order(simt::Order::late); }

    static void spend(cudaStream_t stream, const double& seconds) {
        simt::enqueue(stream, [&seconds] { simt::pretend(seconds); });
    }
    /// Enqueues two all-reduces, and the device's work during them.
    void enqueue_step() {
        for (int sum = 0; sum < 2; ++sum) {
            spend(device_, gradient_seconds_);
            made_.record(device_);
            made_.block(sums_);
            times_.begin_all_reduce(sums_);
            spend(sums_, sum_seconds_);
            times_.end_all_reduce(sums_);
        }
        summed_.record(sums_);
        times_.begin_wait(device_);
        summed_.block(device_);
        times_.end_wait(device_);
        spend(device_, gradient_seconds_);
    }

    double gradient_seconds_ = 0, sum_seconds_ = 0;
    OwnedStream device_, sums_;
    OwnedEvent made_, summed_;
    AllReduceTimes times_;
};

TEST_P(RecordedSums, HaveTheTimesOfTheRunThatWasLast) {
    const auto recording = record_work(device_, [this] { enqueue_step(); });
    for (const double seconds : {1000, 100}) {
        sum_seconds_ = seconds;
        recording->run();
        cudaStreamSynchronize(device_);
        const auto last = times_.last_run();
        ASSERT_TRUE(last);
        EXPECT_NEAR(last->in_flight, 2 * seconds, kTolerance);
        // Late streams run all-reduces when the device waits for them. Early streams run them when
        // their gradients are complete.
        const bool is_hidden = GetParam() == simt::Order::early;
        EXPECT_NEAR(last->exposed, is_hidden ? 0 : 2 * seconds, kTolerance);
    }
}

TEST_P(RecordedSums, OmitWhatTheDeviceDoesBesides) {
    gradient_seconds_ = 1000;
    const auto recording = record_work(device_, [this] { enqueue_step(); });
    recording->run();
    cudaStreamSynchronize(device_);
    EXPECT_LT(times_.last_run()->exposed, kTolerance);
    EXPECT_LT(times_.last_run()->in_flight, kTolerance);
}

TEST_P(RecordedSums, HaveNoTimeWhileARunIsInProgress) {
    const auto recording = record_work(device_, [this] { enqueue_step(); });
    EXPECT_THROW(times_.last_run(), Error);
    recording->run();
    if (GetParam() == simt::Order::late) {
        EXPECT_THROW(times_.last_run(), Error);
    }
    cudaStreamSynchronize(device_);
    EXPECT_NO_THROW(times_.last_run());
}

TEST_P(RecordedSums, AreTheOnlyOnesThatAreTimed) {
    enqueue_step();
    cudaStreamSynchronize(device_);
    EXPECT_FALSE(times_.last_run());
}

INSTANTIATE_TEST_SUITE_P(OnCpu, RecordedSums,
                         testing::Values(simt::Order::late, simt::Order::early),
                         [](const auto& test) {
                             return test.param == simt::Order::late ? "late" : "early";
                         });

}  // namespace
}  // namespace hpcai::comm
