// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>

#include <hpcai/base/rounding.hpp>
#include <hpcai/device/rank_exchange.hpp>
#include <hpcai/ops/operation.hpp>
#include <hpcai/ops/optimizer_rule.hpp>
#include <hpcai/ops/picture_view.hpp>

namespace hpcai::device {

using ops::StepScalars;

/// Sizes of the memory that a kernel needs.
struct KernelMemory {
    std::size_t saved_bytes = 0;      // written by the forward pass, read after it
    std::size_t prepared_bytes = 0;   // working copies of parameters, kept between steps
    std::size_t workspace_bytes = 0;  // scratch of one pass
};

/// Returns the offset in bytes of a value's channel sums (ops::outputs_channel_sums). They follow
/// the value's elements, which take `element_bytes`.
constexpr std::size_t sums_offset(std::size_t element_bytes) {
    return align_up(element_bytes, 256);
}

/// Addresses of all tensors that a kernel reads and writes, in the layout of its Device. A null
/// pointer in `input_gradients` means that the gradient is not needed. The canonical layout of a
/// parameter is the row-major order of its tensor::Shape.
struct KernelTensors {
    std::vector<void*> inputs;
    void* output = nullptr;
    std::vector<void*> output_gradients;      // the output's gradient is the sum of these
    std::vector<void*> input_gradients;       // overwritten
    std::vector<float*> parameters;           // fp32 masters, canonical layout
    std::vector<float*> parameter_gradients;  // overwritten, canonical layout
    float* running_mean = nullptr;            // (C)
    float* running_variance = nullptr;        // (C)
    float* inner_running_mean = nullptr;      // (C), for a DualNorm only
    float* inner_running_variance = nullptr;  // (C), for a DualNorm only
    void* saved = nullptr;
    void* prepared = nullptr;
    void* workspace = nullptr;
    const float* loss_scale = nullptr;     // scalar factor of loss gradients
    const StepScalars* scalars = nullptr;  // the step counts select random numbers for int8
};

/// A kernel's copy of a parameter in the compute type: the elements of the master in order, rounded
/// to nearest even.
struct WorkingCopy {
    std::size_t parameter = 0;  // index in KernelTensors::parameters
    void* address = nullptr;    // 64-byte aligned
};

/// One operation, built for one device, shape and precision, and bound to its memory. run()
/// allocates no memory except in libraries and for messages to other ranks. On a CPU it returns
/// when the work is complete. On a GPU it enqueues the work on the device's stream and waits only
/// for messages of other ranks.
class Kernel {
public:
    virtual ~Kernel() = default;

    virtual KernelMemory memory() const { return {}; }
    /// The tensors that the backward pass reads, which may differ from ops::backward_reads().
    virtual ops::BackwardReads backward_reads() const { return {}; }
    /// The passes of the kernel, in the order of a step.
    virtual std::vector<ops::Pass> passes() const = 0;

    /// Must be called once before the first run; the addresses must outlive the kernel.
    virtual void bind(const KernelTensors& tensors) = 0;
    /// The working copies that the prepare pass updates. If an optimizer updates them instead, the
    /// prepare pass is needed only after other changes of the parameters. Empty if this pass also
    /// does other work, which every step needs. Requires bind().
    virtual std::vector<WorkingCopy> working_copies() const { return {}; }
    /// Throws Error(internal) when a library fails; on a CPU, the message names the operation.
    virtual void run(ops::Pass pass) = 0;
};
using KernelPtr = std::unique_ptr<Kernel>;

/// Descriptions of optimizers; ops/optimizer_rule.hpp has the formulas.
using ops::AdaGrad;
using ops::Adam;
using ops::Lamb;
using ops::Lars;
using ops::Sgd;

using OptimizerRule = std::variant<Sgd, Lars, Lamb, Adam, AdaGrad>;

/// Returns the number of states that a rule keeps for each parameter. All are initially 0.
int state_count(const OptimizerRule& rule);

struct Optimizer {
    OptimizerRule rule;
    float weight_decay = 0;
    struct Range {
        std::size_t begin = 0;         // index of the first element, a multiple of 8
        std::size_t end = 0;           // index after the last element
        bool decays = true;            // whether weight decay applies
        bool has_trust_ratio = false;  // false: the ratio is 1
        void* working_copy = nullptr;  // see Kernel::working_copies(); null: none
    };
    std::vector<Range> ranges;  // ascending, disjoint; other elements are not changed
    tensor::DType compute = tensor::DType::f32;  // of working copies
    // Rounds parameters to `compute`, to nearest even, after each step, as if there were no fp32
    // master (Micikevicius et al. 2018, section 3.1, describes the loss of accuracy).
    bool rounds_parameters = false;
    // Set for a shard of a network: ranges hold the shard's part of each parameter, so trust ratios
    // use the norms over all shards. Must outlive the Update. Null: ranges hold full parameters.
    ShardExchange* exchange = nullptr;
};

/// Flat buffers of the same length, and the scalars of the step in device memory.
struct OptimizerTensors {
    std::span<float> parameters;
    std::span<const float> gradients;
    std::array<std::span<float>, 2> states;  // state_count(rule) are used, as kStates lists them
    const StepScalars* scalars = nullptr;
};

/// Throws Error(internal) for buffers and ranges that do not match each other or the rule.
void check(const Optimizer& optimizer, const OptimizerTensors& tensors);

using ops::kMaxCropReduction;
using ops::LossScalePolicy;
using ops::PictureView;
using ops::ViewBatch;

enum class Mode { training, inference };

/// Identifies the random numbers that a kernel uses to round gradients to int8. They also depend on
/// the step (StepScalars::taken_steps + skipped_steps) and on the index of the sample. The index
/// counts the rank's samples over all micro-batches of the step.
struct RoundingKey {
    std::uint64_t seed = 0;
    std::uint32_t model = 0;  // below 2^16
    std::uint32_t rank = 0;   // in the group of the model, below 2^16
    std::uint32_t node = 0;   // index of the operation in the graph, below 2^16
};

/// Options of Device::build(), in addition to the operation.
struct KernelOptions {
    tensor::DType compute = tensor::DType::f32;  // of activations and their gradients
    Mode mode = Mode::training;
    bool needs_input_gradient = true;  // false if no input needs one
    bool tf32 = false;       // convolutions and linear layers may round fp32 operands to tf32
    bool int8 = false;       // f32 convolutions use int8 if ops::computes_in_int8()
    RoundingKey rounding{};  // for int8 in training only
    // For SyncBatchNorm in training; must outlive the kernel.
    SyncBatchNormReducer* sync_batch_norm_reducer = nullptr;
    ShardExchange* exchange = nullptr;  // for a shard of a network; must outlive the kernel
};

/// Owns a block of device memory, 64-byte aligned and initially zero.
class Memory {
public:
    virtual ~Memory() = default;
    virtual void* data() = 0;
    virtual std::size_t bytes() const = 0;
};

/// An optimizer step, built for its buffers. It also updates the working copies of its ranges. It
/// does nothing if OptimizerTensors::scalars->finite is 0.
class Update {
public:
    virtual ~Update() = default;
    /// Enqueues the step.
    virtual void run() = 0;
};

/// Captured work, a CUDA graph, which can be enqueued many times at low cost.
class Recording {
public:
    virtual ~Recording() = default;
    /// Enqueues the work. Throws Error(internal) when the device reports a failure.
    virtual void run() = 0;
};

/// Time stamps in the enqueued work of a device.
class Timeline {
public:
    virtual ~Timeline() = default;
    /// Enqueues a mark after the work enqueued so far. Inside Device::record() the mark is captured
    /// too, and each Recording::run() sets its time.
    virtual void mark() = 0;
    /// Returns the seconds between consecutive marks, in the order of the calls of mark(). Waits
    /// for enqueued work.
    virtual std::vector<double> seconds() const = 0;
};

/// The number formats of a network. Statistics and parameters are always stored in fp32.
struct Precision {
    tensor::DType compute = tensor::DType::f32;
    bool tf32 = false;     // see KernelOptions
    bool int8 = false;     // see KernelOptions; in training only
    bool is_pure = false;  // rounds parameters to the compute type: Optimizer::rounds_parameters
    bool operator==(const Precision&) const = default;
};

/// The value of training.precision: "fp32", "tf32", "fp16" (pure), "mixed" (fp16), "bf16" or
/// "int8".
std::string_view name_of(const Precision& precision);

/// The guarantees of a device about the bits of its results.
struct Determinism {
    bool is_repeatable = false;        // repeated work gives the same bits
    bool is_thread_invariant = false;  // the bits do not depend on threads()
    std::string conditions;            // hardware and libraries that must be equal, for display
};

/// The work that a device has spent on timing kernels to choose among them.
struct Tuning {
    int convolutions = 0;  // passes (forward or gradient) of convolutions with timed cuDNN plans
    double seconds = 0;    // including trials of fused operations
};

/// A JPEG file and its decoded picture: rows of `width` RGB pixels without gaps.
struct JpegFile {
    std::vector<std::byte> bytes;
    int width = 0;  // pixels
    int height = 0;
    std::int64_t offset_bytes = -1;  // of the picture in JpegBatch::pictures(); -1: not decoded
};

/// Decodes JPEG files into device memory, a batch at a time.
class JpegBatch {
public:
    virtual ~JpegBatch() = default;
    /// Waits for the work that was enqueued before the last release(), replaces the pictures by
    /// those of `files`, and returns. Sets JpegFile::offset_bytes: -1 for a file that the decoder
    /// refuses, or for which there is no memory. Any thread may make this call, one at a time.
    virtual void decode(std::span<JpegFile> files) = 0;
    /// The base of the offsets, in device memory. decode() may change it.
    virtual const std::uint8_t* pictures() const = 0;
    /// Declares that only work enqueued so far reads the pictures.
    virtual void release() = 0;
};

/// Returns the bytes of a tensor without padding.
inline std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype) {
    return static_cast<std::size_t>(shape.elements()) * size_of(dtype);
}

/// A device builds kernels and owns memory. Unless stated otherwise, only the thread that made it
/// calls its functions; a device may use its own threads inside a call.
class Device {
public:
    virtual ~Device() = default;

    /// A description, such as "2 threads of AMD EPYC ..., oneDNN 2.6.3, channels last".
    virtual std::string description() const = 0;
    /// The identifier of a GPU, equal in all processes that use it: "GPU-8f6e...". Empty for a CPU.
    virtual std::string uuid() const { return {}; }
    /// The compute types that networks may use, fastest first.
    virtual std::vector<tensor::DType> compute_dtypes() const = 0;
    /// Returns whether KernelOptions::tf32 has an effect.
    virtual bool has_tf32() const { return false; }
    virtual int threads() const = 0;
    /// The bytes of all its memory; of a CPU, host_memory_bytes().
    virtual std::int64_t memory_bytes() const;
    /// The guarantees that were requested when the device was opened.
    virtual Determinism determinism() const = 0;

    /// Throws Error(internal) if there is too little memory.
    virtual std::unique_ptr<Memory> allocate(std::size_t bytes) = 0;
    /// upload() and download() return when the copy and all work enqueued before are complete.
    virtual void upload(void* to, std::span<const std::byte> from) = 0;
    virtual void download(std::span<std::byte> to, const void* from) = 0;
    /// Enqueues an upload; `from` may change afterwards. On a GPU, may wait for an earlier upload
    /// and all work before it. Without enough memory from reserve_uploads(), may wait for all work.
    virtual void enqueue_upload(void* to, std::span<const std::byte> from) = 0;
    /// Like enqueue_upload(), for a destination that no enqueued work reads or writes: the copy may
    /// overtake enqueued work, and the call does not wait for that work.
    virtual void enqueue_fresh_upload(void* to, std::span<const std::byte> from) {
        enqueue_upload(to, from);
    }
    /// Enqueues a copy within device memory.
    virtual void enqueue_copy(void* to, const void* from, std::size_t bytes) = 0;
    /// Reserves memory for calls of enqueue_upload() with up to this many bytes each. May wait for
    /// all work. Throws Error(internal) if there is too little memory.
    virtual void reserve_uploads(std::size_t /*bytes*/) {}
    /// Returns the bytes of a value of this shape and type in the layout of this device.
    virtual std::size_t storage_bytes(const tensor::Shape& shape, tensor::DType dtype) const {
        return device::storage_bytes(shape, dtype);
    }
    /// Writes a tensor, given in fp32 as (N, H, W, C), (N, C) or (C), to `to` in the layout of this
    /// device for this shape and type, rounded to nearest even. `to` has storage_bytes(). Returns
    /// when the copy is complete. Throws Error(internal) for an unsupported type or number of
    /// dimensions, or a wrong number of values.
    virtual void store_channels_last(void* to, const tensor::Shape& shape, tensor::DType dtype,
                                     std::span<const float> values) = 0;
    /// Waits for all enqueued work.
    virtual void synchronize() = 0;

    /// Returns whether to use a fused operation instead of those it replaces: a Convolution with
    /// `sums`, a BatchNorm with `from_sums`, a DualNorm, a PointwiseNorm or a NormPool. May time
    /// both variants.
    virtual bool accepts(const ops::Operation& /*operation*/, const KernelOptions& /*options*/) {
        return false;
    }
    /// The timing in accepts() and build() so far; absent if the device does not time kernels.
    virtual std::optional<Tuning> tuning() const { return std::nullopt; }
    /// Builds a kernel. Throws Error(internal) if this device does not support the operation.
    virtual KernelPtr build(const ops::Operation& operation, const KernelOptions& options) = 0;

    /// Builds an optimizer step. The buffers in `tensors` and the working copies must outlive the
    /// Update. Throws Error(internal) for inconsistent buffers and ranges, or options that this
    /// device does not support.
    virtual std::unique_ptr<Update> build(const Optimizer& optimizer,
                                          const OptimizerTensors& tensors) = 0;

    /// Sets scalars->finite to 0 if any of `values` (16-byte aligned) is infinite or NaN. This and
    /// the next two functions enqueue their work; `scalars` are in device memory.
    virtual void check_finite(std::span<const float> values, StepScalars* scalars) = 0;
    /// Adds the sum of `losses`, in a fixed order, to scalars->loss_sum.
    virtual void add_losses(std::span<const float> losses, StepScalars* scalars) = 0;
    /// Ends a step. If `finite` is 1, the step counts as taken and good, and a dynamic scale
    /// doubles after good_steps_to_double consecutive good steps unless it would exceed
    /// `max_scale`. If `finite` is 0, the step counts as skipped and a dynamic scale halves, not
    /// below `min_scale`. Then gradient_factor = loss_weight / loss_scale and finite = 1.
    virtual void finish_step(const LossScalePolicy& policy, StepScalars* scalars) = 0;

    virtual bool can_resize_crops() const { return false; }
    /// Enqueues work that resizes each view's crop to side x side (antialiased bilinear, with the
    /// bits of data::resize_bilinear) and then flips it. `batch` must have 1 to 65535 rows and a
    /// side of 1 to 2^15. Throws Error(internal) for other batches, and if not can_resize_crops().
    virtual void resize_crops(const ViewBatch& batch);
    /// Returns a decoder of JPEG files, or null if the device has none. The first call opens it;
    /// afterwards description() names the decoder, or the reason why there is none, and any thread
    /// may call this function. The device must outlive the result.
    virtual std::unique_ptr<JpegBatch> make_jpeg_batch() { return nullptr; }

    virtual bool can_record() const { return false; }
    /// Captures the work that `enqueue` enqueues on this device, without running it. `enqueue` must
    /// not wait for the device or upload to it, and everything it uses must outlive the Recording.
    /// Throws Error(internal) if can_record() is false.
    virtual std::unique_ptr<Recording> record(const std::function<void()>& enqueue);

    /// Returns a timeline without marks. The default, for synchronous devices, uses the host's
    /// clock. The device must outlive the timeline, which must outlive every Recording that
    /// contains its marks.
    virtual std::unique_ptr<Timeline> make_timeline();

    /// A hash of the bits of the n `values`, including the sign of zero and the payloads of NaN. It
    /// is equal on every device. Word i has the bits of value 2i, plus 2^32 times those of
    /// value 2i + 1, if it exists. The hash is n + sum over i of mix(word i + (i + 1) *
    /// 0x9e3779b97f4a7c15), modulo 2^64. mix is the finalizer of SplitMix64 (Steele, Lea, Flood
    /// 2014; Stafford's variant 13), a bijection, so a change within one word always changes the
    /// hash. Waits for enqueued work.
    virtual std::uint64_t hash(std::span<const float> values) = 0;

    /// Returns whether the device supports KernelOptions::int8.
    virtual bool has_int8() const { return false; }

    /// Returns whether the device supports tensor parallelism: ops::AllGather, ops::ReduceScatter
    /// and Optimizer::exchange.
    virtual bool supports_shards() const { return false; }

    /// Begins a phase of host work, which a profiler shows until the next call. `name` must be a
    /// static string, or null for no phase.
    virtual void begin_phase(const char* /*name*/) {}
};

}  // namespace hpcai::device
