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
#include <hpcai/ops/operation.hpp>

/// The engine for NVIDIA GPUs. Images are stored channels last, (N, H, W, C), and filters as (K, R,
/// S, C): K filters of R rows and S columns. If C is 3, a fourth channel of zeros is stored.
namespace hpcai::device::cuda {

using tensor::DType;
using tensor::Shape;

class PlanCache;

/// The resources of all CUDA kernels. It lives as long as its device, which owns the handles and
/// has set their stream to `stream`. Without handles (`cudnn` null), kernels can be planned for the
/// device that `properties` describes, but cannot run.
struct Context {
    cudnnHandle_t cudnn = nullptr;
    cublasLtHandle_t cublas_lt = nullptr;
    cudaStream_t stream = nullptr;
    int sm = 90;                 // 10 x major + minor compute capability
    std::string properties;      // cuDNN's device properties as JSON, used without handles only
    PlanCache* plans = nullptr;  // the fastest known plans; may be null
    bool autotune = true;        // time plans for convolutions without an entry in `plans`
    bool deterministic = false;  // only plans with bitwise repeatable results
    Tuning* tuning = nullptr;    // counts timed convolutions and seconds; not null with a device

    bool has_device() const { return cudnn != nullptr; }
};

/// The number of channels of an image in memory; additional channels are zeros.
constexpr std::int64_t stored_channels(std::int64_t channels) {
    return channels == 3 ? 4 : channels;
}

/// Throw Error(internal) with `what` and the message of the library unless `status` is success.
void check(cudaError_t status, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

/// Waits for the device; if it is unusable, rethrows the current exception. For catch blocks only.
void rethrow_fault();

/// Plans a BatchNorm with `frozen`, for build().
KernelPtr build_frozen_norm(const ops::BatchNorm&, const KernelOptions&, const Context&);

/// Throws Error(internal) for an `exchange`, buffers of different lengths, and ranges out of order,
/// outside the buffers or with a `begin` that is not a multiple of 8.
std::unique_ptr<Update> build_update(const Optimizer& optimizer, const OptimizerTensors& tensors,
                                     const Context& context, Device& device);

}  // namespace hpcai::device::cuda
