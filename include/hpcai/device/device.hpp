// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hpcai/device/kernel.hpp>
#include <hpcai/device/optimizer.hpp>
#include <hpcai/device/picture_view.hpp>
#include <hpcai/device/shard_exchange.hpp>
#include <hpcai/device/step_scalars.hpp>
#include <hpcai/device/sync_batch_norm_reducer.hpp>
#include <hpcai/ops/operation.hpp>
#include <hpcai/tensor/dtype.hpp>

namespace hpcai::device {

enum class Mode { training, inference };

/// Names the random numbers by which a kernel rounds gradients to int8, together with the step, of
/// StepScalars::taken_steps and skipped_steps, and the sample's place among those of the rank in
/// all micro-batches of the step.
struct RoundingKey {
    std::uint64_t seed = 0;
    std::uint32_t model = 0;  // below 2^16
    std::uint32_t rank = 0;   // in the model's group, below 2^16
    std::uint32_t node = 0;   // of the graph as it is built, below 2^16
};

/// What a kernel is planned for, beside its operation.
struct KernelOptions {
    tensor::DType compute = tensor::DType::f32;  // of activations and their gradients
    Mode mode = Mode::training;
    bool needs_input_gradient = true;  // false for the first layer
    bool tf32 = false;       // fp32 factors of convolutions and linear layers may lose 13 bits
    bool int8 = false;       // convolutions in f32 multiply what ops::computes_in_int8 says
    RoundingKey rounding{};  // int8 in training only
    // For a BatchNorm in training whose statistics are those of several ranks; outlives the kernel.
    SyncBatchNormReducer* sync_batch_norm_reducer = nullptr;
    ShardExchange* exchange = nullptr;  // of a part of a network; outlives the kernel
};

/// A block of device memory, 64-byte aligned, zeroed, freed with its owner.
class Memory {
public:
    virtual ~Memory() = default;
    virtual void* data() = 0;
    virtual std::size_t bytes() const = 0;
};

/// An optimizer step, planned for its buffers, which keeps the working copies of its ranges in step
/// with their parameters. While numbers->finite is 0 it changes nothing.
class Update {
public:
    virtual ~Update() = default;
    /// Returns when it is enqueued.
    virtual void run() = 0;
};

/// Work that was recorded once, to be enqueued again and again at little cost.
class Recording {
public:
    virtual ~Recording() = default;
    /// Throws Error(internal) when the device reports a failure.
    virtual void run() = 0;
};

/// Points in a device's work, by the clock that sees it.
class Timeline {
public:
    virtual ~Timeline() = default;
    /// Behind the work enqueued so far. Inside Device::record it is a point of the recording, with
    /// the time of the run that was last.
    virtual void mark() = 0;
    /// From each mark to the next, in the order in which they were made. Waits for enqueued work.
    virtual std::vector<double> seconds() const = 0;
};

/// What a network computes in; statistics and sums are fp32, and masters unless there are none.
struct Precision {
    tensor::DType compute = tensor::DType::f32;
    bool tf32 = false;     // see KernelOptions
    bool int8 = false;     // likewise, of the network that trains
    bool is_pure = false;  // parameters are numbers of `compute`, too: Optimizer::rounds_parameters
    bool operator==(const Precision&) const = default;
};

/// As training.precision has it: "fp32", "tf32", "fp16" (pure), "mixed" (fp16), "bf16" or "int8".
std::string_view name_of(const Precision& precision);

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
    /// Of a GPU, the same in every process that uses it: "GPU-8f6e...". Empty for a CPU.
    virtual std::string uuid() const { return {}; }
    /// The precisions a network can compute in here, fastest first.
    virtual std::vector<tensor::DType> compute_dtypes() const = 0;
    /// Whether KernelOptions::tf32 makes a difference.
    virtual bool has_tf32() const { return false; }
    virtual int threads() const = 0;
    /// What it was opened to promise; nothing unless it was asked to.
    virtual Determinism determinism() const = 0;

    /// Throws Error(internal) when the bytes cannot be had.
    virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;
    /// Returns once the bytes have arrived and all work enqueued before is done.
    virtual void upload(void* to, std::span<const std::byte> from) = 0;
    virtual void download(std::span<std::byte> to, const void* from) = 0;
    /// Takes a copy of `from`, which may then change; the bytes arrive after the work enqueued
    /// before and ahead of the work enqueued after it. May wait for the work ahead of the fourth
    /// call before this one, counting those of more than 4096 bytes, or the 32nd of the others; and
    /// for all work where a call needs more memory than reserve_uploads() got.
    virtual void enqueue_upload(void* to, std::span<const std::byte> from) = 0;
    /// The same to where no work enqueued so far reads or writes, for none of which it waits.
    virtual void enqueue_fresh_upload(void* to, std::span<const std::byte> from) {
        enqueue_upload(to, from);
    }
    /// Copies within device memory, after the work enqueued before.
    virtual void enqueue_copy(void* to, const void* from, std::size_t bytes) = 0;
    /// Gets now what enqueue_upload() needs for up to so many bytes at once. May wait for all work.
    /// Throws Error(internal) when it cannot be had.
    virtual void reserve_uploads(std::size_t /*bytes*/) {}
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

    /// Whether a network gains from build() of an operation that others were joined to: one that
    /// carries or reads sums, a NormConvolution or a DualNorm. May plan and time it.
    virtual bool accepts(const ops::Operation& operation, const KernelOptions& options);
    /// Plans an operation. Throws Error(internal) when this device has no way to compute it.
    virtual std::unique_ptr<Kernel> build(const ops::Operation& operation,
                                          const KernelOptions& options) = 0;

    /// Plans an optimizer step. Everything in `tensors`, and working copies, outlive it. Throws
    /// Error(internal) for buffers and ranges that do not fit one another.
    virtual std::unique_ptr<Update> build(const Optimizer& optimizer,
                                          const OptimizerTensors& tensors) = 0;

    /// The following enqueue work on numbers in device memory. Clears numbers->finite where any of
    /// `values`, which begin at a multiple of 16 bytes, is infinite or NaN.
    virtual void check_finite(std::span<const float> values, StepScalars* numbers) = 0;
    /// numbers->loss_sum += the sum of `losses`, in an order that never changes.
    virtual void add_losses(std::span<const float> losses, StepScalars* numbers) = 0;
    /// Ends a step. After finite gradients one more step is taken and good, and after enough of
    /// them a dynamic scale doubles unless it would pass `largest`; otherwise the step counts as
    /// skipped and a dynamic scale halves, not below `smallest`. Then gradient_factor =
    /// loss_weight / loss_scale and finite = 1.
    virtual void finish_step(const LossScalePolicy& policy, StepScalars* numbers) = 0;

    /// Whether it cuts and resizes pictures that lie in its memory.
    virtual bool resizes_crops() const { return false; }
    /// Enqueues, for each row that has a view: its crop is resized to side x side, antialiased
    /// bilinear with the bits of data::resize_bilinear, and then mirrored. Throws Error(internal)
    /// where resizes_crops() is false, and for a number of rows or a side that does not fit.
    virtual void resize_crops(const ViewBatch& batch);

    /// Whether it has recordings.
    virtual bool records() const { return false; }
    /// Records the work that `enqueue` enqueues on this device, without doing it. Nothing in
    /// `enqueue` may wait for the device or upload to it, and everything it touches outlives the
    /// recording. Throws Error(internal) where records() is false.
    virtual std::unique_ptr<Recording> record(const std::function<void()>& enqueue);

    /// Without marks. By default the host's clock, for devices that do their work at once. The
    /// device outlives it, and it every recording with its marks.
    virtual std::unique_ptr<Timeline> make_timeline();

    /// A fingerprint of the bits of `values`, n in number, with -0 and the payloads of NaN as they
    /// are; the same number on every device. With word i = bits of value 2i, and those of value
    /// 2i + 1 times 2^32, or 0 where it ends before: n + sum over i of
    /// mix(word i + (i + 1) * 0x9e3779b97f4a7c15), all modulo 2^64, mix being the finalizer of
    /// SplitMix64 (Steele, Lea, Flood 2014; Stafford's variant 13). mix is one to one, so a change
    /// within one word never goes unseen. Waits for enqueued work.
    virtual std::uint64_t hash(std::span<const float> values) = 0;

    /// Whether it serves KernelOptions::int8.
    virtual bool has_int8() const { return false; }

    /// Whether it computes a part of a network: ops::AllGather and ops::ReduceScatter, and trust
    /// ratios over the parts.
    virtual bool computes_parts() const { return false; }

    /// Names what the host does, or enqueues, until the next call, for a profiler that watches;
    /// null: nothing more. `name` lives as long as the program.
    virtual void begin_phase(const char* /*name*/) {}
};

/// Bytes of a tensor without padding, what most devices need for it.
std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype);

}  // namespace hpcai::device
