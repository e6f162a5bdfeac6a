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

/// The engine for NVIDIA GPUs. Images lie channels last, (N, H, W, C), those of three channels
/// with a fourth of zeros behind them; filters (K, R, S, C) likewise.
namespace hpcai::device::cuda {

using tensor::DType;
using tensor::Shape;

class PlanCache;

/// What every CUDA kernel is built from; lives as long as its device, which owns the handles and
/// has tied them to `stream`. Without handles (`cudnn` null) kernels can be planned for the
/// device that `properties` describes, and not run.
struct Context {
    cudnnHandle_t cudnn = nullptr;
    cublasLtHandle_t cublas_lt = nullptr;
    cudaStream_t stream = nullptr;
    int sm = 90;                 // 10 x major + minor compute capability
    std::string properties;      // cuDNN's device properties as JSON, read without handles only
    PlanCache* plans = nullptr;  // the fastest plans known; null: none are
    bool autotune = true;        // time the plans of a convolution that is not in `plans`
    bool deterministic = false;  // only plans that give the same bits again
    Tuning* tuning = nullptr;    // where what is timed is counted; with a device

    bool has_device() const { return cudnn != nullptr; }
};

/// Channels of an image in memory: those behind the given ones are zeros.
constexpr std::int64_t stored_channels(std::int64_t channels) {
    return channels == 3 ? 4 : channels;
}

/// Throw Error(internal) with what was done and the library's own words, unless `status` says
/// success.
void check(cudaError_t status, const char* what);
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);

/// For build_kernel(). Throws Error(internal) for an operation that this engine does not compute.
std::unique_ptr<Kernel> build(const ops::InputNormalize&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Convolution&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::BatchNorm&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::NormConvolution&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::DualNorm&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::GroupNorm&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Bias&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::UpsampleAdd&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Relu&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Add&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::MaxPool&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::GlobalAveragePool&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Linear&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::SoftmaxCrossEntropy&, const KernelOptions&,
                              const Context&);
std::unique_ptr<Kernel> build(const ops::AnchorTargets&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RpnLoss&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Proposals&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RoiTargets&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RoiAlign&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::RoiLoss&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::Detections&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::CellCrossEntropy&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::AllGather&, const KernelOptions&, const Context&);
std::unique_ptr<Kernel> build(const ops::ReduceScatter&, const KernelOptions&, const Context&);
/// For a frozen one.
std::unique_ptr<Kernel> build_frozen_norm(const ops::BatchNorm&, const KernelOptions&,
                                          const Context&);

}  // namespace hpcai::device::cuda
