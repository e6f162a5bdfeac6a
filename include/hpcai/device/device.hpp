// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hpcai/device/kernel.hpp>
#include <hpcai/ops/operation.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::device {

enum class Mode { training, inference };

/// What a kernel is planned for, beside its operation.
struct KernelOptions {
    tensor::DType compute = tensor::DType::f32;  // of activations and their gradients
    Mode mode = Mode::training;
    bool needs_input_gradient = true;  // false for the first layer
    bool tf32 = false;  // fp32 factors of convolutions and linear layers may lose 13 bits
};

/// A block of device memory, 64-byte aligned, zeroed, freed with its owner.
class Memory {
public:
    virtual ~Memory() = default;
    virtual void* data() = 0;
    virtual std::size_t bytes() const = 0;
};

/// v = momentum v + (g + decay w); w -= rate v (or rate (g + decay w + momentum v) for Nesterov):
/// PyTorch's SGD, Sutskever et al. 2013.
struct SgdStep {
    float learning_rate = 0;
    float momentum = 0;
    float weight_decay = 0;
    bool nesterov = false;
};

/// What a device promises of the bits of its results.
struct Determinism {
    bool over_repeats = false;  // the same work gives the same bits again
    bool over_threads = false;  // and whatever threads() is
    std::string conditions;     // what has to be the same for that, for people
};

/// Something that trains: it plans kernels and owns memory. One process uses one device from one
/// thread; a device may use threads of its own inside a call.
class Device {
public:
    virtual ~Device() = default;

    /// "2 threads of AMD EPYC ..., oneDNN 2.6.3": for people.
    virtual std::string description() const = 0;
    /// The precisions a network can compute in here, fastest first.
    virtual std::vector<tensor::DType> compute_dtypes() const = 0;
    virtual int threads() const = 0;
    /// What it was opened to promise; nothing unless it was asked to.
    virtual Determinism determinism() const = 0;

    /// Throws Error(internal) when the bytes cannot be had.
    virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;
    /// Returns once the bytes have arrived.
    virtual void upload(void* to, std::span<const std::byte> from) = 0;
    virtual void download(std::span<std::byte> to, const void* from) = 0;
    /// Bytes in which this device's kernels keep a value of this shape and type.
    virtual std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype) const;
    /// Writes a value, given in fp32 as (N, H, W, C), (N, C) or (C), to `to` in the layout in which
    /// this device's kernels keep values of this shape and type, rounding to nearest even. `to` has
    /// storage_bytes(). Returns once the bytes have arrived. Throws Error(internal) for a type that
    /// kernels do not compute in, a rank without layout or a wrong number of values.
    virtual void store_channels_last(void* to, const tensor::Shape& shape, tensor::DType dtype,
                                     std::span<const float> values) = 0;
    /// The way back.
    virtual void load_channels_last(std::span<float> values, const tensor::Shape& shape,
                                    tensor::DType dtype, const void* from) = 0;
    /// Returns once all enqueued work is done.
    virtual void synchronize() = 0;

    /// Plans an operation. Throws Error(internal) when this device has no way to compute it.
    virtual std::unique_ptr<Kernel> build(const ops::Operation& operation,
                                          const KernelOptions& options) = 0;

    /// One optimizer step over a range of the flat buffers, all of the same length.
    virtual void sgd(const SgdStep& step, std::span<float> parameters,
                     std::span<const float> gradients, std::span<float> momentum) = 0;

    /// A fingerprint of the bits of `values`, n in number, with -0 and the payloads of NaN as they
    /// are; the same number on every device. With word i = bits of value 2i, and those of value
    /// 2i + 1 times 2^32, or 0 where it ends before: n + sum over i of
    /// mix(word i + (i + 1) * 0x9e3779b97f4a7c15), all modulo 2^64, mix being the finalizer of
    /// SplitMix64 (Steele, Lea, Flood 2014; Stafford's variant 13). mix is one to one, so a change
    /// within one word never goes unseen. Waits for enqueued work.
    virtual std::uint64_t hash(std::span<const float> values) = 0;
};

/// Bytes of a tensor without padding, what most devices need for it.
std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype);

}  // namespace hpcai::device
