// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "array.hpp"
#include "device/cuda/cuda_device.hpp"
#include "simt/device_memory.hpp"
#include "simt/streams.hpp"

namespace hpcai::device {
namespace {

constexpr std::size_t kUnlimitedBytes = ~std::size_t{0};  // bytes, more than exist

std::unique_ptr<Device> make_device() {
    return cuda::make_cuda_device({.autotune = false});
}

/// Returns a device whose streams run only when a caller waits for them.
std::unique_ptr<Device> make_late_device() {
    simt::set_order(simt::Order::late);
    return make_device();
}

/// Limits the free memory of the GPU during its lifetime.
class FreeMemory {
public:
    explicit FreeMemory(std::size_t bytes) { simt::set_free_memory(bytes); }
    ~FreeMemory() { simt::set_free_memory(kUnlimitedBytes); }
    FreeMemory(const FreeMemory&) = delete;
    FreeMemory& operator=(const FreeMemory&) = delete;
};

/// Uploads to a device whose streams run as early or as late as CUDA allows.
class Uploads : public testing::TestWithParam<simt::Order> {
protected:
    Uploads() { simt::set_order(GetParam()); }
    ~Uploads() override { simt::set_order(simt::Order::late); }
};

TEST_P(Uploads, ArriveInTheOrderOfTheWorkAround) {
    for (const std::size_t count : {10, 5000}) {  // numbers of floats, for small and large uploads
        const auto device = make_device();
        const Array<float> input(*device, std::vector<float>(count));
        std::vector<Array<float>> outputs;
        std::vector<std::unique_ptr<Kernel>> kernels;
        for (int i = 0; i < 70; ++i) {
            outputs.emplace_back(*device, std::vector<float>(count));
            kernels.push_back(twice(*device, input, outputs.back().data()));
        }
        std::vector<float> values(count);
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            values.assign(count, static_cast<float>(i));
            device->enqueue_upload(input.data(), std::as_bytes(std::span(values)));
            values.assign(count, -1);
            kernels[i]->run(ops::Pass::forward);
        }
        for (std::size_t i = 0; i < kernels.size(); ++i) {
            EXPECT_EQ(outputs[i].read(), std::vector<float>(count, 2 * static_cast<float>(i)));
        }
    }
}

TEST_P(Uploads, MayBeEverLarger) {
    const auto device = make_device();
    std::vector<Array<float>> targets;
    for (std::size_t count = 1; count < 300000; count = 3 * count + 1) {
        const std::vector<float> values(count, static_cast<float>(count));
        targets.emplace_back(*device, std::vector<float>(count));
        device->enqueue_upload(targets.back().data(), std::as_bytes(std::span(values)));
    }
    for (const auto& target : targets) {
        const std::size_t count = target.span().size();
        EXPECT_EQ(target.read(), std::vector<float>(count, static_cast<float>(count)));
    }
}

TEST_P(Uploads, ThatSeveralThreadsCopyArriveComplete) {
    const auto device = make_device();
    std::vector<float> values(13'000'001);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const Array<float> target(*device, std::vector<float>(values.size()));
    device->enqueue_upload(target.data(), std::as_bytes(std::span(values)));
    EXPECT_TRUE(target.read() == values);
}

TEST_P(Uploads, ContinueAfterOneThatThereIsNoMemoryFor) {
    const auto device = make_device();
    const Array<float> target(*device, std::vector<float>(100000));
    const std::vector<float> small(2000, 3), large(100000, 5);
    const auto upload = [&](const std::vector<float>& values) {
        device->enqueue_upload(target.data(), std::as_bytes(std::span(values)));
    };
    for (int i = 0; i < 2; ++i) upload(small);
    {
        const FreeMemory little(1000);
        for (int i = 0; i < 2; ++i) EXPECT_THROW(upload(large), Error);
    }
    for (int i = 0; i < 2; ++i) upload(large);
    EXPECT_EQ(target.read(), large);
}

TEST_P(Uploads, ToUnusedMemoryArriveAheadOfLaterWork) {
    const auto device = make_device();
    for (const std::size_t count :
         {1, 3000, 1500000}) {  // numbers of floats; the last are sent in many pieces
        const Array<float> input(*device, std::vector<float>(count)),
            output(*device, std::vector<float>(count));
        const auto kernel = twice(*device, input, output.data());
        std::vector<float> values(count);
        for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
        device->enqueue_fresh_upload(input.data(), std::as_bytes(std::span(values)));
        values.assign(count, -1);
        kernel->run(ops::Pass::forward);
        const std::vector<float> doubled = output.read();
        for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(doubled[i], 2 * static_cast<float>(i));
    }
    device->enqueue_fresh_upload(nullptr, {});
}

INSTANTIATE_TEST_SUITE_P(OnCpu, Uploads, testing::Values(simt::Order::late, simt::Order::early),
                         [](const auto& test) {
                             return test.param == simt::Order::late ? "late" : "early";
                         });

/// Work that completes only when a caller waits for it, like an all-reduce with a failed rank.
class UnendedWork : public testing::Test {
protected:
    void enqueue() {
        simt::enqueue(cuda::context_of(*device_).stream, [this] { is_over_ = true; });
    }
    bool is_over_ = false;
    std::unique_ptr<Device> device_ = make_late_device();
};

TEST_F(UnendedWork, IsNotWaitedForByUploadsToWhereNoWorkGoes) {
    std::vector<Array<float>> targets;
    const std::vector<float> values(300000, 1);
    for (int i = 0; i < 9; ++i) targets.emplace_back(*device_, std::vector<float>(values.size()));
    enqueue();
    for (const auto& target : targets) {
        device_->enqueue_fresh_upload(target.data(), std::as_bytes(std::span(values)));
    }
    EXPECT_FALSE(is_over_);
    for (const auto& target : targets) EXPECT_EQ(target.read(), values);
    EXPECT_TRUE(is_over_);
}

TEST_F(UnendedWork, IsNotWaitedForByFourUploadsForWhichThereIsRoom) {
    const std::vector<float> few(2000, 2), many(50000, 1);
    const Array<float> target(*device_, std::vector<float>(many.size()));
    const auto upload = [&](const std::vector<float>& values) {
        device_->enqueue_upload(target.data(), std::as_bytes(std::span(values)));
    };
    device_->reserve_uploads(many.size() * sizeof(float));
    for (int i = 0; i < 3; ++i) upload(few);
    enqueue();
    for (int i = 0; i < 4; ++i) upload(many);
    EXPECT_FALSE(is_over_);
    EXPECT_EQ(target.read(), many);
}

}  // namespace
}  // namespace hpcai::device
