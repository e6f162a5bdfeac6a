// SPDX-License-Identifier: Apache-2.0
#include "elements.cuh"
#include "elementwise.hpp"

namespace hpcai::kernels {
namespace {

struct Copy {
    __host__ __device__ float operator()(const float (&in)[1]) const { return in[0]; }
};
struct Addition {
    __host__ __device__ float operator()(const float (&in)[2]) const { return in[0] + in[1]; }
};
struct Relu {
    // A NaN is not <= 0, so it is kept.
    __host__ __device__ float operator()(const float (&in)[1]) const {
        return in[0] <= 0 ? 0 : in[0];
    }
};
struct ReluGradient {
    __host__ __device__ float operator()(const float (&in)[2]) const {
        return in[0] <= 0 ? 0 : in[1];
    }
    __host__ __device__ float operator()(const float (&in)[3]) const {
        return in[0] <= 0 ? 0 : in[1] + in[2];
    }
};

template <typename T, int Inputs>
struct Sources {
    const T* from[Inputs];
};

/// to[i] = body(element i of every source) for i < N.
template <int N, typename T, int Inputs, typename Body>
__device__ void map_pack(const Pack<N> (&in)[Inputs], T* to, const Body& body) {
    Pack<N> result;
    for (int lane = 0; lane < N; ++lane) {
        float elements[Inputs];
        for (int i = 0; i < Inputs; ++i) elements[i] = in[i].lane[lane];
        result.lane[lane] = body(elements);
    }
    store(to, result);
}

template <typename T, int Inputs, typename Body>
__global__ void map_kernel(Sources<T, Inputs> sources, T* to, std::int64_t count, Body body) {
    constexpr int kInFlight = 2;
    constexpr int N = kLanes<T>;
    const std::int64_t vectors = count / N, stride = item_stride();
    for (std::int64_t first = first_item(); first < vectors; first += kInFlight * stride) {
        Pack<N> in[kInFlight][Inputs];
        for (int part = 0; part < kInFlight; ++part) {
            const std::int64_t at = first + part * stride;
            if (at >= vectors) continue;
            for (int i = 0; i < Inputs; ++i) in[part][i] = load<N>(sources.from[i] + at * N);
        }
        for (int part = 0; part < kInFlight; ++part) {
            const std::int64_t at = first + part * stride;
            if (at < vectors) map_pack(in[part], to + at * N, body);
        }
    }
    for (std::int64_t at = vectors * N + first_item(); at < count; at += stride) {
        Pack<1> in[Inputs];
        for (int i = 0; i < Inputs; ++i) in[i] = load<1>(sources.from[i] + at);
        map_pack(in, to + at, body);
    }
}

template <typename T, int Inputs, typename Body>
void map(const Sources<T, Inputs>& sources, void* to, std::int64_t count, const Body& body,
         Stream stream) {
    launch(map_kernel<T, Inputs, Body>, grid_over(count / kLanes<T>, stream), sources,
           static_cast<T*>(to), count, body);
}

template <typename T>
__global__ void fill_kernel(T* to, float value, std::int64_t count) {
    constexpr int N = kLanes<T>;
    const std::int64_t vectors = count / N;
    Pack<N> pack;
    for (int lane = 0; lane < N; ++lane) pack.lane[lane] = value;
    for (std::int64_t at = first_item(); at < vectors; at += item_stride()) {
        store(to + at * N, pack);
    }
    for (std::int64_t at = vectors * N + first_item(); at < count; at += item_stride()) {
        to[at] = from_float<T>(value);
    }
}

template <typename T>
__global__ void relu_from_f32_kernel(const float* x, T* y, std::int64_t count) {
    constexpr int N = kLanes<T>;
    const std::int64_t vectors = count / N;
    for (std::int64_t at = first_item(); at < vectors; at += item_stride()) {
        const Pack<N> in[1] = {load<N>(x + at * N)};
        map_pack(in, y + at * N, Relu{});
    }
    for (std::int64_t at = vectors * N + first_item(); at < count; at += item_stride()) {
        const Pack<1> in[1] = {load<1>(x + at)};
        map_pack(in, y + at, Relu{});
    }
}

template <typename T>
const T* typed(const void* address) {
    return static_cast<const T*>(address);
}

}  // namespace

void add(const AddArguments& arguments, Stream stream) {
    with_type(arguments.dtype, [&]<typename T>() {
        const T* a = typed<T>(arguments.a);
        const T* b = typed<T>(arguments.b);
        if (b == nullptr) {
            map(Sources<T, 1>{{a}}, arguments.sum, arguments.count, Copy{}, stream);
        } else {
            map(Sources<T, 2>{{a, b}}, arguments.sum, arguments.count, Addition{}, stream);
        }
    });
}

void relu(tensor::DType dtype, const void* x, void* y, std::int64_t count, Stream stream) {
    with_type(dtype,
              [&]<typename T>() { map(Sources<T, 1>{{typed<T>(x)}}, y, count, Relu{}, stream); });
}

void relu_from_f32(const float* x, tensor::DType dtype, void* y, std::int64_t count,
                   Stream stream) {
    with_type(dtype, [&]<typename T>() {
        launch(relu_from_f32_kernel<T>, grid_over(count / kLanes<T>, stream), x, static_cast<T*>(y),
               count);
    });
}

void relu_gradient(const ReluGradientArguments& arguments, Stream stream) {
    with_type(arguments.dtype, [&]<typename T>() {
        const T* y = typed<T>(arguments.y);
        const T* dy0 = typed<T>(arguments.dy0);
        const T* dy1 = typed<T>(arguments.dy1);
        if (dy1 == nullptr) {
            map(Sources<T, 2>{{y, dy0}}, arguments.dx, arguments.count, ReluGradient{}, stream);
        } else {
            map(Sources<T, 3>{{y, dy0, dy1}}, arguments.dx, arguments.count, ReluGradient{},
                stream);
        }
    });
}

void fill(tensor::DType dtype, void* to, float value, std::int64_t count, Stream stream) {
    with_type(dtype, [&]<typename T>() {
        launch(fill_kernel<T>, grid_over(count / kLanes<T>, stream), static_cast<T*>(to), value,
               count);
    });
}

}  // namespace hpcai::kernels
