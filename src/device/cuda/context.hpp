// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>

#include <hpcai/device/device.hpp>
#include <hpcai/device/operation_kernel.hpp>
#include <hpcai/device/tuning.hpp>
#include <hpcai/ops/operation.hpp>

/// The engine for NVIDIA GPUs. Images are stored channels last, (N, H, W, C), and filters as (K, R,
/// S, C): K filters of R rows and S columns. Where C is 3, a fourth channel of zeros follows.
namespace hpcai::device::cuda {

using tensor::DType;
using tensor::Shape;

class PlanCache;

/// What every CUDA kernel is built with. It lives as long as its device, which owns the handles and
/// has set their stream to `stream`. Without handles (`cudnn` null) kernels can be planned for the
/// device that `properties` describes, but not run.
struct Context {
    cudnnHandle_t cudnn = nullptr;
    cublasLtHandle_t cublas_lt = nullptr;
    cudaStream_t stream = nullptr;
    int sm = 90;                 // 10 x major + minor compute capability
    std::string properties;      // cuDNN's device properties as JSON, used without handles only
    PlanCache* plans = nullptr;  // the fastest plans known; may be null
    bool autotune = true;        // time plans for convolutions without an entry in `plans`
    bool deterministic = false;  // only plans with bitwise repeatable results
    Tuning* tuning = nullptr;    // counts timed convolutions and seconds; not null with a device

    bool has_device() const { return cudnn != nullptr; }
};

/// Channels of an image in memory; channels beyond `channels` are zeros.
constexpr std::int64_t stored_channels(std::int64_t channels) {
    return channels == 3 ? 4 : channels;
}

/// Throw Error(internal) with `what` and the library's own message unless `status` is success.
void check(cudaError_t status, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

/// Rethrows the current exception if the device is unusable. Must be called in a catch block.
void rethrow_fault();

KernelPtr build_frozen_norm(const ops::BatchNorm&, const KernelOptions&, const Context&);

/// Throws Error(internal) for an `exchange`, buffers of different lengths, and ranges out of order,
/// outside the buffers or not from a multiple of 8.
std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context, Device& device);

}  // namespace hpcai::device::cuda
