// SPDX-License-Identifier: Apache-2.0
#include "kernels/wire_format.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/comm/wire_format.hpp>

namespace hpcai::kernels {
namespace {

using comm::WireFormat;

constexpr std::size_t kCount = 70001;

/// Numbers in a GPU's memory.
template <typename T>
class OnGpu {
public:
    explicit OnGpu(const std::vector<T>& values) : count_(values.size()) {
        void* memory = nullptr;
        EXPECT_EQ(cudaMalloc(&memory, count_ * sizeof(T)), cudaSuccess);
        data_ = static_cast<T*>(memory);
        cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice);
    }
    ~OnGpu() { cudaFree(data_); }
    OnGpu(const OnGpu&) = delete;
    OnGpu& operator=(const OnGpu&) = delete;

    T* data() const { return data_; }
    std::span<T> span() const { return {data_, count_}; }
    std::vector<T> read() const {
        std::vector<T> values(count_);
        EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
                  cudaSuccess);
        return values;
    }

private:
    T* data_ = nullptr;
    std::size_t count_;
};

std::vector<float> values_of(std::uint32_t step) {
    CounterStream random(5, RandomPurpose::test, step);
    std::vector<float> values(kCount);
    for (float& value : values) {
        value = static_cast<float>(random.normal() * std::exp(40 * random.uniform() - 20));
    }
    values[kCount / 2] = INFINITY;
    return values;
}

class WireOnGpu : public testing::TestWithParam<WireFormat> {
protected:
    void SetUp() override {
        int devices = 0;
        if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) GTEST_SKIP() << "no GPU";
    }
};

/// Tests these kernels as the GPU's compiler translates them; tests/kernels runs them on the CPU.
TEST_P(WireOnGpu, HasTheBitsOfTheHost) {
    const std::size_t bytes = comm::wire_bytes(GetParam(), kCount);
    std::vector<float> want_residual(kCount), want(kCount), want_sum = values_of(9);
    std::vector<std::byte> want_wire(bytes);
    const OnGpu<float> residual(want_residual), got(want), sum(want_sum);
    const OnGpu<std::byte> wire(want_wire);
    for (std::uint32_t step = 0; step < 3; ++step) {
        const std::vector<float> host = values_of(step);
        const OnGpu<float> values(host);
        encode_for_wire(GetParam(), values.span(), residual.data(), wire.data(), nullptr);
        decode_from_wire(GetParam(), wire.data(), got.span(), nullptr);
        add_from_wire(GetParam(), wire.data(), sum.span(), nullptr);
        comm::encode(GetParam(), host, want_wire, want_residual);
        comm::decode(GetParam(), want_wire, want);
        comm::add_decoded(GetParam(), want_wire, want_sum);
        EXPECT_EQ(wire.read(), want_wire) << step;
        EXPECT_EQ(residual.read(), want_residual) << step;
        EXPECT_EQ(got.read(), want) << step;
        EXPECT_EQ(sum.read(), want_sum) << step;
    }
}

INSTANTIATE_TEST_SUITE_P(, WireOnGpu,
                         testing::Values(WireFormat::fp32, WireFormat::bf16, WireFormat::fp16,
                                         WireFormat::int8),
                         [](const auto& format) {
                             return std::string(comm::name_of(format.param));
                         });

}  // namespace
}  // namespace hpcai::kernels
