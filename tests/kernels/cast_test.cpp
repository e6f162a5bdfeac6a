// SPDX-License-Identifier: Apache-2.0
#include "kernels/cast.hpp"

#include <bit>
#include <cmath>

#include <elements.cuh>
#include <gtest/gtest.h>

#include "kernels/buffer.hpp"
#include "kernels/host_numbers.hpp"

namespace hpcai::kernels {
namespace reference {

inline void cast_from_f32(const float* from, tensor::DType dtype, void* to, std::int64_t count,
                          Stream) {
    for (std::int64_t i = 0; i < count; ++i) put(dtype, to, i, from[i]);
}

inline void cast_to_f32(tensor::DType dtype, const void* from, float* to, std::int64_t count,
                        Stream) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(get(dtype, from, i));
}

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

inline void pad_channels(const PaddedRows& shape, const float* from, void* to, Stream) {
    for_each_padded(shape, [&](std::int64_t padded, std::int64_t at) {
        put(shape.dtype, to, padded, at < 0 ? 0 : from[at]);
    });
}

inline void strip_channels(const PaddedRows& shape, const void* from, float* to, Stream) {
    for_each_padded(shape, [&](std::int64_t padded, std::int64_t at) {
        if (at >= 0) to[at] = static_cast<float>(get(shape.dtype, from, padded));
    });
}

}  // namespace reference

namespace {

class CastKernels : public ForEachDtype {};

TEST_P(CastKernels, RoundAsTheFormatsAreDefined) {
    // Every pattern of the upper 20 bits: all exponents, both signs, ties and their neighbours.
    constexpr std::int64_t kCount = 1 << 20;
    Buffer from(DType::f32, kCount + 5);
    for (std::int64_t i = 0; i < from.count(); ++i) {
        const auto low = static_cast<std::uint32_t>(i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 0xfff);
        from.as<std::uint32_t>()[i] = static_cast<std::uint32_t>(i) << 12 | low;
    }
    Buffer got(GetParam(), from.count()), expected(GetParam(), from.count());
    cast_from_f32(from.as<float>(), GetParam(), got.data(), from.count(), nullptr);
    reference::cast_from_f32(from.as<float>(), GetParam(), expected.data(), from.count(), nullptr);
    EXPECT_TRUE(same(got, expected));

    Buffer back(DType::f32, from.count()), expected_back(DType::f32, from.count());
    cast_to_f32(GetParam(), got.data(), back.as<float>(), from.count(), nullptr);
    reference::cast_to_f32(GetParam(), got.data(), expected_back.as<float>(), from.count(),
                           nullptr);
    EXPECT_TRUE(same(back, expected_back));
}

TEST_P(CastKernels, WriteEveryElementAndNoMore) {
    Contents contents(2);
    for (const std::int64_t count : {1, 7, 8, 15, 16, 17, 4103, 1056 * 256 * 16 + 9}) {
        Buffer from = contents.whole(DType::f32, count, 200, -100);
        Buffer to(GetParam(), count), back(DType::f32, count);
        cast_from_f32(from.as<float>(), GetParam(), to.data(), count, nullptr);
        cast_to_f32(GetParam(), to.data(), back.as<float>(), count, nullptr);
        EXPECT_TRUE(to.fence_stands());
        EXPECT_TRUE(same(back, from)) << count;
    }
}

TEST_P(CastKernels, PadAndStripChannels) {
    Contents contents(3);
    const auto shape_of = [](std::int64_t rows, int channels, int padded) {
        return PaddedRows{
            .dtype = GetParam(), .rows = rows, .channels = channels, .padded_channels = padded};
    };
    for (const PaddedRows& shape :
         {shape_of(1, 1, 1), shape_of(49 * 64, 3, 4), shape_of(5, 3, 8), shape_of(7, 16, 16)}) {
        const std::int64_t count = shape.rows * shape.channels;
        Buffer from = contents.whole(DType::f32, count, 200, -100);
        Buffer got(GetParam(), shape.padded_elements()),
            expected(GetParam(), shape.padded_elements());
        pad_channels(shape, from.as<float>(), got.data(), nullptr);
        reference::pad_channels(shape, from.as<float>(), expected.data(), nullptr);
        EXPECT_TRUE(same(got, expected));

        Buffer back(DType::f32, count), twin(DType::f32, count);
        strip_channels(shape, got.data(), back.as<float>(), nullptr);
        reference::strip_channels(shape, got.data(), twin.as<float>(), nullptr);
        EXPECT_TRUE(same(back, from));
        EXPECT_TRUE(same(twin, from));
    }
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
