// SPDX-License-Identifier: Apache-2.0
#include "kernels/cast.hpp"

#include <bit>
#include <cmath>

#include <elements.cuh>
#include <gtest/gtest.h>

#include <hpcai/base/error.hpp>

#include "kernels/buffer.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

/// Calls body(padded index, index, or -1 in the padding) for every padded element.
template <typename Body>
void for_each_padded(const PaddedRows& shape, const Body& body) {
    std::int64_t padded = 0;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
        for (int c = 0; c < shape.padded_channels; ++c) {
            body(padded++, c < shape.channels ? row * shape.channels + c : -1);
        }
    }
}

/// Calls body(index in the blocks, image, row, column, channel) for every element of the blocks.
template <typename Body>
void for_each_in_blocks(const BlockedImages& shape, const Body& body) {
    std::int64_t at = 0;
    for (std::int64_t image = 0; image < shape.images; ++image) {
        for (int i = -shape.border; i < shape.height; i += 2) {
            for (int block = 0; block < shape.columns() * shape.adjacent; ++block) {
                const int j =
                    2 * (block / shape.adjacent + block % shape.adjacent - shape.first_offset()) -
                    shape.border;
                for (const auto& [y, x] : {std::pair(i, j), {i, j + 1}, {i + 1, j}, {i + 1, j + 1}})
                    for (int c = 0; c < shape.padded_channels; ++c) body(at++, image, y, x, c);
            }
        }
    }
}

inline void pad_rows(const PaddedRows& shape, tensor::DType from_dtype, const void* from, void* to,
                     Stream) {
    for_each_padded(shape, [&](std::int64_t padded, std::int64_t at) {
        put(shape.dtype, to, padded, at < 0 ? 0 : get(from_dtype, from, at));
    });
}

inline void strip_rows(const PaddedRows& shape, const void* from, tensor::DType to_dtype, void* to,
                       Stream) {
    for_each_padded(shape, [&](std::int64_t padded, std::int64_t at) {
        if (at >= 0) put(to_dtype, to, at, get(shape.dtype, from, padded));
    });
}

}  // namespace reference

namespace {

/// `count` numbers of `dtype` without padding.
PaddedRows flat(DType dtype, std::int64_t count) {
    return {.dtype = dtype, .rows = count, .channels = 1, .padded_channels = 1};
}

class CastKernels : public ForEachDtype {};

TEST_P(CastKernels, RoundAsTheFormatsAreDefined) {
    // Every pattern of the upper 20 bits: all exponents, both signs, ties and their neighbours.
    constexpr std::int64_t kCount = 1 << 20;
    Buffer from(DType::f32, kCount + 5);
    for (std::int64_t i = 0; i < from.count(); ++i) {
        const auto low = static_cast<std::uint32_t>(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 0xfff);
        from.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(i) << 12 | low;
    }
    const PaddedRows shape = flat(GetParam(), from.count());
    Buffer got(GetParam(), from.count()), expected(GetParam(), from.count());
    pad_rows(shape, DType::f32, from.data(), got.data(), nullptr);
    reference::pad_rows(shape, DType::f32, from.data(), expected.data(), nullptr);
    EXPECT_TRUE(same(got, expected));

    Buffer back(DType::f32, from.count()), expected_back(DType::f32, from.count());
    strip_rows(shape, got.data(), DType::f32, back.data(), nullptr);
    reference::strip_rows(shape, got.data(), DType::f32, expected_back.data(), nullptr);
    EXPECT_TRUE(same(back, expected_back));
}

TEST_P(CastKernels, WriteEveryElementAndNoMore) {
    Contents contents(2);
    for (const std::int64_t count : {1, 7, 8, 15, 16, 17, 4103, 1056 * 256 * 16 + 9}) {
        Buffer from = contents.whole(DType::f32, count, 200, -100);
        Buffer to(GetParam(), count), back(DType::f32, count);
        pad_rows(flat(GetParam(), count), DType::f32, from.data(), to.data(), nullptr);
        strip_rows(flat(GetParam(), count), to.data(), DType::f32, back.data(), nullptr);
        EXPECT_TRUE(to.guard_is_intact());
        EXPECT_TRUE(same(back, from)) << count;
    }
}

TEST_P(CastKernels, PadAndStripRowsOfEveryType) {
    Contents contents(3);
    const DType dtype = GetParam();
    for (const DType other : kComputeDtypes) {
        for (const PaddedRows& shape : {PaddedRows{dtype, 1, 1, 1},
                                        {dtype, 49 * 64, 3, 4},
                                        {dtype, 5, 3, 8},
                                        {dtype, 7, 16, 16},
                                        {dtype, 1000, 20, 20}}) {
            Buffer from = contents.normal(other, shape.rows * shape.channels);
            from.set(0, other == DType::f16 ? 65504 : 1e30);
            Buffer got(dtype, shape.padded_elements()), expected(dtype, shape.padded_elements());
            pad_rows(shape, other, from.data(), got.data(), nullptr);
            reference::pad_rows(shape, other, from.data(), expected.data(), nullptr);
            EXPECT_TRUE(same(got, expected)) << shape.rows;

            Buffer back(other, from.count()), twin(other, from.count());
            strip_rows(shape, got.data(), other, back.data(), nullptr);
            reference::strip_rows(shape, got.data(), other, twin.data(), nullptr);
            EXPECT_TRUE(same(back, twin)) << shape.rows;
        }
    }
}

TEST(PaddedRows, HaveAtLeastTheChannelsOfRowsWithoutPadding) {
    EXPECT_THROW(pad_rows({.channels = 4, .padded_channels = 3}, DType::f32, nullptr, nullptr, {}),
                 Error);
}

/// Returns the index of a pixel's channel in packed images; -1 outside of the image.
std::int64_t index_in_images(const BlockedImages& shape, std::int64_t image, int y, int x,
                             int channels) {
    if (y < 0 || y >= shape.height || x < 0 || x >= shape.width) return -1;
    return ((image * shape.height + y) * shape.width + x) * channels;
}

TEST_P(CastKernels, PutImagesIntoBlocksOfFourPixels) {
    Contents contents(4);
    for (const BlockedImages& shape : {BlockedImages{GetParam(), 2, 8, 6, 4, 4, 1},
                                       {GetParam(), 3, 4, 10, 16, 16, 1},
                                       {GetParam(), 1, 5, 7, 8, 8, 0},
                                       {GetParam(), 700, 2, 2, 4, 4, 1},
                                       {GetParam(), 2, 8, 6, 4, 4, 1, 4},
                                       {GetParam(), 3, 4, 10, 8, 8, 1, 2},
                                       {GetParam(), 1, 2, 260, 4, 4, 1, 4}}) {
        const std::int64_t count = shape.images * shape.height * shape.width * shape.channels;
        Buffer from = contents.whole(GetParam(), count, 200, -100);
        Buffer got(GetParam(), shape.elements()), expected(GetParam(), shape.elements());
        to_blocks(shape, from.data(), got.data(), nullptr);
        reference::for_each_in_blocks(
            shape, [&](std::int64_t at, std::int64_t image, int y, int x, int c) {
                const std::int64_t pixel = index_in_images(shape, image, y, x, shape.channels);
                reference::put(GetParam(), expected.data(), at,
                               pixel < 0 ? 0 : reference::get(GetParam(), from.data(), pixel + c));
            });
        EXPECT_TRUE(same(got, expected)) << shape.height << " x " << shape.width;
    }
}

TEST_P(CastKernels, PutFiltersIntoBlocksAndTakeThemOut) {
    Contents contents(5);
    for (const BlockedImages& shape :
         {BlockedImages{GetParam(), 64, 7, 7, 3, 4}, {GetParam(), 8, 3, 3, 16, 16}}) {
        const std::int64_t count = shape.images * shape.height * shape.width * shape.channels;
        Buffer from = contents.whole(DType::f32, count, 200, -100);
        Buffer got(GetParam(), shape.elements()), expected(GetParam(), shape.elements());
        filters_to_blocks(shape, from.as<float>(), got.data(), nullptr);
        reference::for_each_in_blocks(
            shape, [&](std::int64_t at, std::int64_t filter, int y, int x, int c) {
                const std::int64_t tap = index_in_images(shape, filter, y, x, shape.channels);
                const bool is_inside = tap >= 0 && c < shape.channels;
                reference::put(GetParam(), expected.data(), at,
                               is_inside ? from.as<float>()[tap + c] : 0);
            });
        EXPECT_TRUE(same(got, expected)) << shape.height;

        Buffer back(DType::f32, count);
        filters_from_blocks(shape, got.data(), back.as<float>(), nullptr);
        EXPECT_TRUE(same(back, from)) << shape.height;
    }
}

INSTANTIATE_TEST_SUITE_P(, CastKernels, testing::ValuesIn(kComputeDtypes), dtype_name);

}  // namespace
}  // namespace hpcai::kernels
