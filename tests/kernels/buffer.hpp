// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/philox.hpp>
#include <hpcai/reference/naive_ops.hpp>
#include <hpcai/tensor/dtype.hpp>

#include "kernels/host_numbers.hpp"

/// The operands of kernels in tests.
namespace hpcai::kernels {

using tensor::DType;

inline const std::vector<DType> kComputeDtypes{DType::f32, DType::f16, DType::bf16};

/// Returns half the distance between neighbours near 1, with a reserve for a second rounding.
inline double tolerance_of(DType dtype) {
    return dtype == DType::f32 ? 1e-6 : dtype == DType::f16 ? 6e-4 : 5e-3;
}

/// `count` numbers at a multiple of 64 bytes, initially with all bits set, and a guard after them
/// that must not be written.
class Buffer {
public:
    Buffer(DType dtype, std::int64_t count)
        : dtype_(dtype),
          count_(count),
          bytes_(static_cast<std::size_t>(count) * size_of(dtype)),
          memory_(static_cast<std::byte*>(
              std::aligned_alloc(64, (bytes_ + kGuardBytes + 63) / 64 * 64))) {
        std::memset(memory_.get(), 0xff, bytes_ + kGuardBytes);
    }
    Buffer(const Buffer& other) : Buffer(other.dtype_, other.count_) {
        std::memcpy(data(), other.data(), bytes_);
    }
    Buffer(DType dtype, const std::vector<double>& values)
        : Buffer(dtype, static_cast<std::int64_t>(values.size())) {
        for (std::size_t i = 0; i < values.size(); ++i) {
            set(static_cast<std::int64_t>(i), values[i]);
        }
    }

    DType dtype() const { return dtype_; }
    std::int64_t count() const { return count_; }
    void* data() { return memory_.get(); }
    const void* data() const { return memory_.get(); }
    template <typename T>
    T* as() {
        return static_cast<T*>(data());
    }
    std::size_t bytes() const { return bytes_; }

    double operator[](std::int64_t index) const {
        switch (dtype_) {
            case DType::u8:
                return static_cast<const std::uint8_t*>(data())[index];
            case DType::s32:
                return static_cast<const std::int32_t*>(data())[index];
            default:
                return reference::get(dtype_, data(), index);
        }
    }
    void set(std::int64_t index, double value) {
        if (dtype_ == DType::u8) {
            as<std::uint8_t>()[index] = static_cast<std::uint8_t>(value);
        } else if (dtype_ == DType::s32) {
            as<std::int32_t>()[index] = static_cast<std::int32_t>(value);
        } else {
            reference::put(dtype_, data(), index, value);
        }
    }
    naive::Tensor tensor(const tensor::Shape& shape) const {
        naive::Tensor result(shape);
        for (std::int64_t i = 0; i < count_; ++i) result[i] = (*this)[i];
        return result;
    }
    bool guard_is_intact() const {
        for (std::size_t i = 0; i < kGuardBytes; ++i) {
            if (memory_.get()[bytes_ + i] != std::byte{0xff}) return false;
        }
        return true;
    }

private:
    static constexpr std::size_t kGuardBytes = 64;
    struct Free {
        void operator()(std::byte* memory) const { std::free(memory); }
    };

    DType dtype_;
    std::int64_t count_;
    std::size_t bytes_;
    std::unique_ptr<std::byte, Free> memory_;
};

/// Random contents, different in each call.
class Contents {
public:
    explicit Contents(std::uint32_t stream) : stream_(2022, RandomPurpose::test, 400 + stream) {}

    Buffer normal(DType dtype, std::int64_t count) {
        Buffer buffer(dtype, count);
        for (std::int64_t i = 0; i < count; ++i) buffer.set(i, stream_.normal());
        return buffer;
    }
    /// Returns whole numbers in [low, low + n).
    Buffer whole(DType dtype, std::int64_t count, std::uint32_t n, int low = 0) {
        Buffer buffer(dtype, count);
        for (std::int64_t i = 0; i < count; ++i) {
            buffer.set(i, low + static_cast<int>(stream_.below(n)));
        }
        return buffer;
    }

private:
    CounterStream stream_;
};

/// Returns whether the numbers are equal, where NaN equals NaN, and nothing was written after them.
inline testing::AssertionResult same(const Buffer& got, const Buffer& expected) {
    if (!got.guard_is_intact()) return testing::AssertionFailure() << "written beyond the end";
    if (got.count() != expected.count()) return testing::AssertionFailure() << "another size";
    if (std::memcmp(got.data(), expected.data(), got.bytes()) == 0) {
        return testing::AssertionSuccess();
    }
    for (std::int64_t i = 0; i < got.count(); ++i) {
        const double a = got[i], b = expected[i];
        if (a == b || (std::isnan(a) && std::isnan(b))) continue;
        return testing::AssertionFailure() << "element " << i << " is " << a << ", not " << b;
    }
    return testing::AssertionSuccess();
}

/// Returns whether numbers are within `tolerance` of the expected ones, relative to the larger of
/// the number and 1.
template <typename Numbers>
testing::AssertionResult near(const Buffer& got, const Numbers& expected, double tolerance) {
    if (!got.guard_is_intact()) return testing::AssertionFailure() << "written beyond the end";
    for (std::int64_t i = 0; i < got.count(); ++i) {
        const double error = std::fabs(got[i] - expected[i]);
        if (error <= tolerance * std::fmax(1, std::fabs(expected[i]))) continue;
        return testing::AssertionFailure()
               << "element " << i << " is " << got[i] << ", not " << expected[i];
    }
    return testing::AssertionSuccess();
}

/// Runs a test once for each dtype that kernels compute in.
class ForEachDtype : public testing::TestWithParam<DType> {};
inline std::string dtype_name(const testing::TestParamInfo<DType>& info) {
    return std::string(name_of(info.param));
}

}  // namespace hpcai::kernels
