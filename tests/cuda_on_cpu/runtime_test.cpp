// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>
#include <launch.cuh>

#include "simt/device_memory.hpp"
#include "simt/streams.hpp"

/// The emulated runtime of tests/simt guarantees no more than CUDA's, so that mistakes are
/// detected.
namespace hpcai::simt {
namespace {

using kernels::launch;

__global__ void fill(int* to, int count, int value) {
    if (static_cast<int>(threadIdx.x) < count) to[threadIdx.x] = value;
}
__global__ void copy(const int* from, int* to, int count) {
    if (static_cast<int>(threadIdx.x) < count) to[threadIdx.x] = from[threadIdx.x];
}
__global__ void touch(int* to, int index) {
    to[index] = 1;
}

constexpr int kCount = 32;
constexpr std::size_t kBytes = kCount * sizeof(int);

/// Two streams that do not wait for each other, a block of device memory for each, and pinned
/// memory.
class RuntimeTest : public testing::TestWithParam<Order> {
protected:
    RuntimeTest() {
        set_order(GetParam());
        for (int i = 0; i < 2; ++i) {
            EXPECT_EQ(cudaStreamCreateWithFlags(&stream_[i], cudaStreamNonBlocking), cudaSuccess);
            EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&block_[i]), kBytes), cudaSuccess);
        }
        EXPECT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned_), kBytes), cudaSuccess);
        EXPECT_EQ(cudaEventCreate(&event_), cudaSuccess);
    }
    ~RuntimeTest() override {
        cudaGetLastError();
        for (int i = 0; i < 2; ++i) {
            cudaFree(block_[i]);
            cudaStreamDestroy(stream_[i]);
        }
        cudaFreeHost(pinned_);
        cudaEventDestroy(event_);
        cudaGetLastError();
        set_order(Order::late);
    }

    void enqueue_fill(int stream, int block, int value) {
        launch(fill, {.threads = kCount, .stream = stream_[stream]}, block_[block], kCount, value);
    }
    void enqueue_copy(int stream, int from, int to) {
        launch(copy, {.threads = kCount, .stream = stream_[stream]}, block_[from], block_[to],
               kCount);
    }
    /// Returns the value of every element of a block after all work of a stream.
    int value(int stream, int block) {
        std::vector<int> values(kCount);
        EXPECT_EQ(cudaMemcpyAsync(values.data(), block_[block], kBytes, cudaMemcpyDeviceToHost,
                                  stream_[stream]),
                  cudaSuccess);
        for (const int one : values) EXPECT_EQ(one, values[0]);
        return values[0];
    }

    cudaStream_t stream_[2]{};
    int* block_[2]{};
    int* pinned_ = nullptr;
    cudaEvent_t event_ = nullptr;
};

TEST_P(RuntimeTest, MemoryIsGarbageUntilItIsWritten) {
    EXPECT_EQ(value(0, 0), -1);
    enqueue_fill(0, 0, 5);
    EXPECT_EQ(value(0, 0), 5);
}

TEST_P(RuntimeTest, DoesWorkInTheOrderOfItsStream) {
    for (int i = 0; i < 10; ++i) enqueue_fill(0, 0, i);
    enqueue_copy(0, 0, 1);
    EXPECT_EQ(value(0, 1), 9);
}

TEST_P(RuntimeTest, ShowsThatAStreamDoesNotWaitForAnother) {
    enqueue_fill(0, 0, 1);
    enqueue_copy(1, 0, 1);  // early: before the fill
    enqueue_fill(1, 0, 2);
    if (GetParam() == Order::early) {
        EXPECT_EQ(value(1, 1), -1);
        EXPECT_EQ(value(0, 0), 1) << "the second stream's fill came first";
    } else {
        EXPECT_EQ(value(0, 0), 1);
        EXPECT_EQ(pending_work(), 2u);
    }
}

TEST_P(RuntimeTest, AnEventOrdersStreams) {
    enqueue_fill(0, 0, 1);
    EXPECT_EQ(cudaEventRecord(event_, stream_[0]), cudaSuccess);
    enqueue_fill(0, 0, 3);
    EXPECT_EQ(cudaStreamWaitEvent(stream_[1], event_, 0), cudaSuccess);
    enqueue_copy(1, 0, 1);
    EXPECT_EQ(value(1, 1), 1);
    EXPECT_EQ(value(0, 0), 3);
}

TEST_P(RuntimeTest, ReadsPinnedMemoryWhenItCopiesAndOtherMemoryAtOnce) {
    std::vector<int> own(kCount, 1);
    std::fill(pinned_, pinned_ + kCount, 1);
    cudaMemcpyAsync(block_[0], pinned_, kBytes, cudaMemcpyHostToDevice, stream_[0]);
    cudaMemcpyAsync(block_[1], own.data(), kBytes, cudaMemcpyHostToDevice, stream_[0]);
    std::fill(pinned_, pinned_ + kCount, 2);
    std::fill(own.begin(), own.end(), 2);
    EXPECT_EQ(value(0, 0), 2);
    EXPECT_EQ(value(0, 1), 1);
}

TEST_P(RuntimeTest, ReportsWhetherWorkIsDone) {
    enqueue_fill(0, 0, 1);
    enqueue_fill(0, 0, 2);
    cudaEventRecord(event_, stream_[0]);
    int asked = 1;
    while (cudaEventQuery(event_) == cudaErrorNotReady) ++asked;
    EXPECT_EQ(asked, 4);
    EXPECT_EQ(cudaStreamQuery(stream_[0]), cudaSuccess);
    EXPECT_EQ(pending_work(), 0u);
}

TEST_P(RuntimeTest, RejectsCopiesBeyondABlockAndOfTheWrongMemory) {
    std::vector<int> host(2 * kCount);
    const auto copy = [&](void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
        return cudaMemcpyAsync(to, from, bytes, kind, stream_[0]);
    };
    EXPECT_EQ(copy(block_[0], host.data(), kBytes + 1, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
    EXPECT_EQ(copy(block_[0] + 1, host.data(), kBytes, cudaMemcpyHostToDevice),
              cudaErrorInvalidValue);
    EXPECT_EQ(copy(host.data(), block_[0], kBytes + 1, cudaMemcpyDeviceToHost),
              cudaErrorInvalidValue);
    EXPECT_EQ(copy(host.data(), host.data() + kCount, kBytes, cudaMemcpyDeviceToHost),
              cudaErrorInvalidValue);
    EXPECT_EQ(copy(block_[0], block_[1], kBytes, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemsetAsync(host.data(), 0, 4, stream_[0]), cudaErrorInvalidValue);
    EXPECT_EQ(cudaMemsetAsync(block_[0], 0, kBytes + 4, stream_[0]), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_P(RuntimeTest, DoesNotFreeTwice) {
    void* block = nullptr;
    EXPECT_EQ(cudaMalloc(&block, 100), cudaSuccess);
    EXPECT_EQ(cudaFree(static_cast<char*>(block) + 16), cudaErrorInvalidValue);
    EXPECT_EQ(cudaFree(block), cudaSuccess);
    EXPECT_EQ(cudaFree(block), cudaErrorInvalidValue);
    std::size_t free = 0, total = 0;
    cudaMemGetInfo(&free, &total);
    EXPECT_EQ(total - free, 2 * kBytes);
    EXPECT_EQ(cudaMalloc(&block, total), cudaErrorMemoryAllocation);
}

TEST_P(RuntimeTest, HasTheMemoryThatItIsLeft) {
    constexpr std::size_t kAll = ~std::size_t{0};
    void* block = nullptr;
    set_free_memory(100);
    EXPECT_EQ(cudaMalloc(&block, 101), cudaErrorMemoryAllocation);
    EXPECT_EQ(cudaMalloc(&block, 100), cudaSuccess);
    void* another = nullptr;
    EXPECT_EQ(cudaMalloc(&another, 1), cudaErrorMemoryAllocation);
    set_free_memory(kAll);
    EXPECT_EQ(cudaMalloc(&another, 1), cudaSuccess);
    cudaFree(block);
    cudaFree(another);
}

TEST_P(RuntimeTest, NoticesPinnedMemoryThatIsFreedTooEarly) {
    void* staged = nullptr;
    cudaMallocHost(&staged, kBytes);
    cudaMemcpyAsync(block_[0], staged, kBytes, cudaMemcpyHostToDevice, stream_[0]);
    EXPECT_EQ(cudaFreeHost(staged), cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaErrorLaunchFailure);
}

TEST_P(RuntimeTest, ReportsTheFailureOfWorkUntilItsStreamsAreGone) {
    enqueue(stream_[0], [] { throw std::runtime_error("a kernel's mistake"); });
    EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaErrorLaunchFailure);
    EXPECT_STREQ(cudaGetErrorString(cudaErrorLaunchFailure), "a kernel's mistake");
    EXPECT_EQ(cudaMemsetAsync(block_[0], 0, 4, stream_[0]), cudaErrorLaunchFailure);
    EXPECT_EQ(cudaGetLastError(), cudaErrorLaunchFailure);
    EXPECT_ANY_THROW(enqueue_fill(0, 0, 1));
}

TEST_P(RuntimeTest, ReplaysWhatWasRecordedInTheOrderOfItsEvents) {
    cudaEvent_t joined = nullptr;
    cudaEventCreate(&joined);
    ASSERT_EQ(cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal), cudaSuccess);
    enqueue_fill(0, 0, 1);
    cudaEventRecord(event_, stream_[0]);
    cudaStreamWaitEvent(stream_[1], event_, 0);
    enqueue_copy(1, 0, 1);
    cudaEventRecord(joined, stream_[1]);
    cudaStreamWaitEvent(stream_[0], joined, 0);
    enqueue_fill(0, 0, 7);
    cudaGraph_t graph = nullptr;
    ASSERT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaSuccess);
    EXPECT_EQ(value(0, 0), -1);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    for (int run = 0; run < 2; ++run) {
        enqueue_fill(0, 1, -5);
        EXPECT_EQ(cudaGraphLaunch(executable, stream_[0]), cudaSuccess);
        EXPECT_EQ(value(0, 1), 1);
        EXPECT_EQ(value(0, 0), 7);
    }
    cudaGraphExecDestroy(executable);
    cudaEventDestroy(joined);
}

TEST_P(RuntimeTest, RejectsWaitsAndAllocationsInACapture) {
    void* block = nullptr;
    const std::vector<std::function<cudaError_t()>> forbidden{
        [&] { return cudaStreamSynchronize(stream_[0]); }, [&] { return cudaMalloc(&block, 8); },
        [&] { return cudaFree(block_[0]); }, [&] { return cudaDeviceSynchronize(); },
        [&] { return cudaMemcpy(block_[0], block_[1], 4, cudaMemcpyDeviceToDevice); }};
    for (const auto& call : forbidden) {
        cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal);
        EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
        cudaGraph_t graph = nullptr;
        EXPECT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaErrorStreamCaptureInvalidated);
        EXPECT_EQ(graph, nullptr);
        EXPECT_EQ(cudaStreamSynchronize(stream_[0]), cudaSuccess);
    }
}

TEST_P(RuntimeTest, RejectsACaptureThatDoesNotJoinAStream) {
    cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal);
    cudaEventRecord(event_, stream_[0]);
    cudaStreamWaitEvent(stream_[1], event_, 0);
    enqueue_fill(1, 1, 1);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaErrorStreamCaptureUnjoined);
    enqueue_fill(1, 1, 2);
    EXPECT_EQ(value(1, 1), 2) << "the stream works on";
}

TEST_P(RuntimeTest, RejectsACaptureThatWaitsForWorkThatIsNotInIt) {
    cudaEventRecord(event_, stream_[1]);
    cudaStreamBeginCapture(stream_[0], cudaStreamCaptureModeThreadLocal);
    EXPECT_EQ(cudaStreamWaitEvent(stream_[0], event_, 0), cudaErrorStreamCaptureIsolation);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_[0], &graph), cudaSuccess);
    cudaGraphDestroy(graph);
}

INSTANTIATE_TEST_SUITE_P(Orders, RuntimeTest, testing::Values(Order::late, Order::early),
                         [](const auto& test) {
                             return test.param == Order::late ? "late" : "early";
                         });

using RuntimeDeathTest = RuntimeTest;

TEST_P(RuntimeDeathTest, KeepsTheHostOutOfDeviceMemory) {
    EXPECT_DEATH(*block_[0] = 1, "");
}

TEST_P(RuntimeDeathTest, DetectsWritesAfterABlock) {
    EXPECT_DEATH(
        {
            int* block = nullptr;
            cudaMalloc(reinterpret_cast<void**>(&block), kBytes);
            launch(touch, {.threads = 1, .stream = stream_[0]}, block, kCount);
            std::exit(cudaFree(block) == cudaErrorLaunchFailure ? 1 : 0);
        },
        "");
}

INSTANTIATE_TEST_SUITE_P(Orders, RuntimeDeathTest, testing::Values(Order::late),
                         [](const auto&) { return "late"; });

}  // namespace
}  // namespace hpcai::simt
