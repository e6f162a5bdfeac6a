// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "elementwise.hpp"

namespace hpcai::kernels {
namespace {

// Adding 0 prevents a fused multiply-add, because the CPU engine rounds the product and the sum.
__host__ __device__ inline float normalized(std::uint8_t pixel, float scale, float shift) {
    return fmaf(scale, static_cast<float>(pixel), 0.0f) + shift;
}

/// Computes one element. `Padded` is the number of padded channels; 0: known only at run time.
template <int Padded>
__device__ float element(const NormalizeArguments& args, std::int64_t pixel, int channel) {
    if (channel >= args.channels) return 0;
    return normalized(args.pixels[pixel * args.channels + channel], args.scale[channel],
                      args.shift[channel]);
}

template <typename T, int Padded>
__global__ void normalize_kernel(const NormalizeArguments args, T* to) {
    constexpr int N = kLanes<T>;
    const int padded = Padded > 0 ? Padded : args.padded_channels;
    const std::int64_t elements = args.count * padded, vectors = elements / N;
    for (std::int64_t at = first_item(); at < vectors; at += item_stride()) {
        Pack<N> pack;
        std::int64_t pixel = at * N / padded;
        int channel = static_cast<int>(at * N - pixel * padded);
        if constexpr (Padded > 0) channel = 0;  // a vector holds whole pixels
        for (int lane = 0; lane < N; ++lane) {
            if constexpr (Padded > 0) {
                pack.lane[lane] = element<Padded>(args, pixel + lane / Padded, lane % Padded);
            } else {
                pack.lane[lane] = element<Padded>(args, pixel, channel);
                if (++channel == padded) {
                    channel = 0;
                    ++pixel;
                }
            }
        }
        store(to + at * N, pack);
    }
    for (std::int64_t at = vectors * N + first_item(); at < elements; at += item_stride()) {
        const std::int64_t pixel = at / padded;
        to[at] = from_float<T>(element<Padded>(args, pixel, static_cast<int>(at - pixel * padded)));
    }
}

template <typename From, typename T>
__global__ void convert_kernel(const From* from, T* to, std::int64_t count) {
    constexpr int N = 8;  // full 16-byte accesses to both buffers
    const std::int64_t vectors = count / N;
    for (std::int64_t at = first_item(); at < vectors; at += item_stride()) {
        store(to + at * N, load<N>(from + at * N));
    }
    for (std::int64_t at = vectors * N + first_item(); at < count; at += item_stride()) {
        to[at] = from_float<T>(to_float(from[at]));
    }
}

template <typename From, typename T>
__global__ void pad_kernel(const StoreNumbersArguments args, const From* from, T* to) {
    const std::int64_t elements = args.count * args.padded_channels;
    for (std::int64_t at = first_item(); at < elements; at += item_stride()) {
        const std::int64_t pixel = at / args.padded_channels;
        const std::int64_t channel = at - pixel * args.padded_channels;
        const float number =
            channel < args.channels ? to_float(from[pixel * args.channels + channel]) : 0;
        to[at] = from_float<T>(number);
    }
}

}  // namespace

void input_normalize(const NormalizeArguments& arguments, Stream stream) {
    if (arguments.channels < 1 || arguments.channels > NormalizeArguments::kMaxChannels ||
        arguments.padded_channels < arguments.channels) {
        fail("input_normalize: the channels are outside the limits of NormalizeArguments");
    }
    with_type(arguments.dtype, [&]<typename T>() {
        const auto grid =
            grid_over(arguments.count * arguments.padded_channels / kLanes<T>, stream);
        T* to = static_cast<T*>(arguments.normalized);
        if (arguments.padded_channels == 4) {
            launch(normalize_kernel<T, 4>, grid, arguments, to);
        } else {
            launch(normalize_kernel<T, 0>, grid, arguments, to);
        }
    });
}

void store_numbers(const StoreNumbersArguments& arguments, Stream stream) {
    if (arguments.channels < 1 || arguments.padded_channels < arguments.channels) {
        fail("store_numbers: expected 1 <= channels <= padded_channels");
    }
    const std::int64_t elements = arguments.count * arguments.padded_channels;
    with_type(arguments.from_dtype, [&]<typename From>() {
        with_type(arguments.dtype, [&]<typename T>() {
            const auto* from = static_cast<const From*>(arguments.from);
            auto* to = static_cast<T*>(arguments.to);
            if (arguments.channels == arguments.padded_channels) {
                launch(convert_kernel<From, T>, grid_over(elements / 8, stream), from, to,
                       elements);
            } else {
                launch(pad_kernel<From, T>, grid_over(elements, stream), arguments, from, to);
            }
        });
    });
}

}  // namespace hpcai::kernels
