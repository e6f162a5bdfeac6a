// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/buffer.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

/// Calls body(fine element, coarse element that it reads) for every fine element.
template <typename Body>
void for_each_element(const UpsampleShape& shape, const Body& body) {
    std::int64_t fine = 0;
    for (std::int64_t image = 0; image < shape.images; ++image) {
        for (std::int64_t i = 0; i < shape.height; ++i) {
            for (std::int64_t j = 0; j < shape.width; ++j) {
                const std::int64_t row =
                    image * shape.coarse_height + i * shape.coarse_height / shape.height;
                const std::int64_t pixel =
                    row * shape.coarse_width + j * shape.coarse_width / shape.width;
                for (std::int64_t c = 0; c < shape.channels; ++c) {
                    body(fine++, pixel * shape.channels + c);
                }
            }
        }
    }
}

inline void upsample_add(const UpsampleShape& shape, const void* fine, const void* coarse, void* y,
                         Stream) {
    for_each_element(shape, [&](std::int64_t at, std::int64_t from) {
        put(shape.dtype, y, at, get(shape.dtype, fine, at) + get(shape.dtype, coarse, from));
    });
}

inline void upsample_add_gradient(const UpsampleShape& shape,
                                  const UpsampleAddGradientArguments& arguments, Stream) {
    const std::int64_t elements =
        shape.images * shape.coarse_height * shape.coarse_width * shape.channels;
    std::vector<double> sums(static_cast<std::size_t>(elements));
    for_each_element(shape, [&](std::int64_t at, std::int64_t from) {
        double gradient = get(shape.dtype, arguments.dy0, at);
        if (arguments.dy1 != nullptr) gradient += get(shape.dtype, arguments.dy1, at);
        sums[from] += gradient;
        if (arguments.fine_gradient != nullptr) {
            put(shape.dtype, arguments.fine_gradient, at, gradient);
        }
    });
    if (arguments.coarse_gradient == nullptr) return;
    for (std::int64_t i = 0; i < elements; ++i) {
        put(shape.dtype, arguments.coarse_gradient, i, sums[i]);
    }
}

}  // namespace reference

namespace {

std::vector<UpsampleShape> shapes(DType dtype) {
    std::vector<UpsampleShape> all;
    for (const auto& [height, width] :
         std::vector<std::array<int, 2>>{{3, 4}, {6, 8}, {5, 3}, {1, 1}, {7, 9}, {12, 30}}) {
        for (const int channels : {1, 4, 21, 8, 24}) {
            all.push_back({dtype, 2, 6, 8, height, width, channels});
        }
    }
    all.push_back({dtype, 1, 2, 80, 1, 40, 512});  // several blocks per row
    return all;
}

class UpsampleAddKernels : public ForEachDtype {
protected:
    Contents contents_{34};

    Buffer fine(const UpsampleShape& of) {
        return contents_.normal(of.dtype, of.images * of.height * of.width * of.channels);
    }
    Buffer coarse(const UpsampleShape& of) {
        return contents_.normal(of.dtype,
                                of.images * of.coarse_height * of.coarse_width * of.channels);
    }
};

TEST_P(UpsampleAddKernels, SumIsTheReferencesBitForBitForAnyRatio) {
    for (const UpsampleShape& shape : shapes(GetParam())) {
        const Buffer x = fine(shape), z = coarse(shape);
        Buffer got(GetParam(), x.count()), expected(GetParam(), x.count());
        upsample_add(shape, x.data(), z.data(), got.data(), nullptr);
        reference::upsample_add(shape, x.data(), z.data(), expected.data(), nullptr);
        EXPECT_TRUE(same(got, expected)) << shape.coarse_height << " " << shape.channels;
    }
}

TEST_P(UpsampleAddKernels, GradientsAreTheReferencesForAnyRatio) {
    for (const UpsampleShape& shape : shapes(GetParam())) {
        const Buffer dy0 = fine(shape), dy1 = fine(shape), like_coarse = coarse(shape);
        for (const void* second : {dy1.data(), static_cast<const void*>(nullptr)}) {
            Buffer dx(GetParam(), dy0.count()), dz(GetParam(), like_coarse.count());
            Buffer expected_dx = dx, expected_dz = dz;
            upsample_add_gradient(shape, {dy0.data(), second, dx.data(), dz.data()}, nullptr);
            reference::upsample_add_gradient(
                shape, {dy0.data(), second, expected_dx.data(), expected_dz.data()}, nullptr);
            EXPECT_TRUE(same(dx, expected_dx)) << shape.coarse_height << " " << shape.channels;
            // Each sum has up to 48 terms in fp32.
            EXPECT_TRUE(near(dz, expected_dz, tolerance_of(GetParam()) + 4e-6))
                << shape.coarse_height << " " << shape.channels;
        }
    }
}

TEST_P(UpsampleAddKernels, OnlyTheGradientThatIsWantedIsWritten) {
    const UpsampleShape shape{GetParam(), 2, 6, 8, 3, 4, 16};
    const Buffer dy = fine(shape);
    Buffer dx(GetParam(), dy.count()), dz(GetParam(), dy.count() / 4), alone = dz;
    upsample_add_gradient(shape, {dy.data(), nullptr, nullptr, alone.data()}, nullptr);
    upsample_add_gradient(shape, {dy.data(), nullptr, dx.data(), dz.data()}, nullptr);
    EXPECT_TRUE(same(alone, dz));
    Buffer fine_alone(GetParam(), dy.count());
    upsample_add_gradient(shape, {dy.data(), nullptr, fine_alone.data(), nullptr}, nullptr);
    EXPECT_TRUE(same(fine_alone, dy));
}

TEST(UpsampleAddKernel, RejectsASideThatIsTooLong) {
    Buffer nothing(DType::f32, 4);
    const UpsampleShape shape{DType::f32, 1, 1, 32769, 1, 1, 1};
    EXPECT_THROW(upsample_add(shape, nothing.data(), nothing.data(), nothing.data(), nullptr),
                 Error);
}

INSTANTIATE_TEST_SUITE_P(, UpsampleAddKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
