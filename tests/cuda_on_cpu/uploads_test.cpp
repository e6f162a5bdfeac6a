// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "array.hpp"
#include "simt/device_memory.hpp"
#include "simt/streams.hpp"
#include "src/device/cuda/cuda_device.hpp"

namespace hpcai::device {
namespace {

constexpr std::size_t kAll = ~std::size_t{0};  // bytes, more than there are

std::unique_ptr<Device> make_device() {
    return cuda::make_cuda_device({.autotune = false});
}

/// In both orders that streams may work in.
class Uploads : public testing::TestWithParam<simt::Order> {
protected:
    Uploads() { simt::set_order(GetParam()); }
    ~Uploads() override { simt::set_order(simt::Order::late); }
};

TEST_P(Uploads, ArriveInTheOrderOfTheWorkAround) {
    for (const std::size_t count : {10, 5000}) {  // floats, for the small way and the large one
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

TEST_P(Uploads, GoOnAfterOneThatThereIsNoMemoryFor) {
    const auto device = make_device();
    const Array<float> target(*device, std::vector<float>(100000));
    const std::vector<float> small(2000, 3), large(100000, 5);
    const auto upload = [&](const std::vector<float>& values) {
        device->enqueue_upload(target.data(), std::as_bytes(std::span(values)));
    };
    for (int i = 0; i < 2; ++i) upload(small);
    simt::set_free_memory(1000);
    for (int i = 0; i < 2; ++i) EXPECT_THROW(upload(large), Error);
    simt::set_free_memory(kAll);
    for (int i = 0; i < 2; ++i) upload(large);
    EXPECT_EQ(target.read(), large);
}

INSTANTIATE_TEST_SUITE_P(OnCpu, Uploads, testing::Values(simt::Order::late, simt::Order::early),
                         [](const auto& test) {
                             return test.param == simt::Order::late ? "late" : "early";
                         });

}  // namespace
}  // namespace hpcai::device
