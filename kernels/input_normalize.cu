// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "elementwise.hpp"

namespace hpcai::kernels {
namespace {

__device__ inline float element(const NormalizeArguments& args, std::int64_t pixel, int channel) {
    if (channel >= args.channels) return 0;
    const auto value = static_cast<float>(args.pixels[pixel * args.channels + channel]);
    // Adding 0 prevents a fused multiply-add: the CPU engine rounds both product and sum.
    return fmaf(args.scale[channel], value, 0.0f) + args.shift[channel];
}

/// `Padded` is the number of channels with padding; 0: known only at run time.
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
                pack.lane[lane] = element(args, pixel + lane / Padded, lane % Padded);
            } else {
                pack.lane[lane] = element(args, pixel, channel);
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
        to[at] = from_float<T>(element(args, pixel, static_cast<int>(at - pixel * padded)));
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

}  // namespace hpcai::kernels
