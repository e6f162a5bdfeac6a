// SPDX-License-Identifier: Apache-2.0
#include "cuda_device.hpp"

#include <deque>

#include <fmt/core.h>
#include <nvtx3/nvToolsExt.h>

#include <hpcai/base/error.hpp>

#include "kernels/crop_resize.hpp"
#include "kernels/cross_entropy.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/optimizer.hpp"

#include "acceptance.hpp"
#include "layout.hpp"
#include "nvjpeg.hpp"
#include "plan_cache.hpp"
#include "transfers.hpp"

namespace hpcai::device::cuda {
namespace {

class CudaMemory final : public Memory {
public:
    CudaMemory(std::size_t bytes, cudaStream_t stream) : memory_(bytes) {
        check(cudaMemsetAsync(memory_.data(), 0, bytes, stream), "clearing memory");
        check(cudaStreamSynchronize(stream), "waiting for the device");
    }
    void* data() override { return memory_.data(); }
    std::size_t bytes() const override { return memory_.bytes(); }

private:
    DeviceBytes memory_;
};

class EventTimeline final : public Timeline {
public:
    explicit EventTimeline(cudaStream_t stream) : stream_(stream) {}

    void mark() override { marks_.emplace_back().record(stream_); }
    std::vector<double> seconds() const override {
        check(cudaStreamSynchronize(stream_), "timing work");
        std::vector<double> intervals;
        for (std::size_t i = 1; i < marks_.size(); ++i) {
            intervals.push_back(marks_[i].seconds_since(marks_[i - 1]));
        }
        return intervals;
    }

private:
    cudaStream_t stream_;
    std::deque<TimedEvent> marks_;
};

class GraphRecording final : public Recording {
public:
    GraphRecording(cudaStream_t stream, const std::function<void()>& enqueue) : stream_(stream) {
        OwnedHandle<cudaGraph_t, cudaGraphDestroy> graph;
        // Thread-local mode lets other threads of the process allocate pinned memory meanwhile.
        check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
        try {
            enqueue();
        } catch (...) {
            cudaStreamEndCapture(stream, graph.out());
            cudaGetLastError();  // clears the error
            throw;
        }
        check(cudaStreamEndCapture(stream, graph.out()), "capturing");
        // All-reduces use a stream of higher priority. This flag keeps the priority in the graph.
        check(
            cudaGraphInstantiate(executable_.out(), graph, cudaGraphInstantiateFlagUseNodePriority),
            "instantiating a CUDA graph");
    }

    void run() override { check(cudaGraphLaunch(executable_, stream_), "launching a CUDA graph"); }

private:
    cudaStream_t stream_;
    OwnedHandle<cudaGraphExec_t, cudaGraphExecDestroy> executable_;
};

/// Selects GPU `index` for the calling thread. Returns its properties.
cudaDeviceProp select_device(int index) {
    const int count = device_count();
    require(index >= 0 && index < count, ExitCode::usage,
            "GPU {} does not exist; number of usable GPUs: {}", index, count);
    check(cudaSetDevice(index), "selecting a GPU");
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, index), "reading a GPU's properties");
    return properties;
}

/// Returns "13.0" for 13000.
std::string version_text(int version) {
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// Returns "9.19.0" for 91900.
std::string library_version(std::size_t version) {
    return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}
std::string cudnn_version() {
    return library_version(cudnnGetVersion());
}

/// The handles of cuDNN and cuBLASLt for the current device; cuDNN uses `stream`.
struct Handles {
    OwnedHandle<cudnnHandle_t, cudnnDestroy> cudnn;
    OwnedHandle<cublasLtHandle_t, cublasLtDestroy> cublas_lt;

    explicit Handles(cudaStream_t stream) {
        check(cudnnCreate(cudnn.out()), "starting cuDNN");
        check(cudnnSetStream(cudnn, stream), "setting the stream of cuDNN");
        check(cublasLtCreate(cublas_lt.out()), "starting cuBLASLt");
    }
};

class CudaDevice final : public Device {
public:
    explicit CudaDevice(const CudaDeviceOptions& options)
        : options_(options),
          properties_(select_device(options.index)),
          handles_(stream_),
          plans_(options.deterministic ? "" : options.plan_cache,
                 {properties_.name, cudnn_version()}),
          transfers_(stream_),
          hash_(sizeof(std::uint64_t)),
          context_{.cudnn = handles_.cudnn,
                   .cublas_lt = handles_.cublas_lt,
                   .stream = stream_,
                   .sm = 10 * properties_.major + properties_.minor,
                   .plans = &plans_,
                   .autotune = options.autotune && !options.deterministic,
                   .deterministic = options.deterministic,
                   .tuning = &tuning_} {
        check_architecture();
    }
    ~CudaDevice() override { cudaStreamSynchronize(stream_); }

    std::string description() const override {
        int driver = 0, runtime = 0;
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        const double gib = static_cast<double>(properties_.totalGlobalMem) / (1 << 30);
        return fmt::format(
            "{} (device {}, {:.0f} GiB), CUDA {}, driver for CUDA {}, cuDNN {}{}{}{}",
            properties_.name, options_.index, gib, version_text(runtime), version_text(driver),
            cudnn_version(), jpeg_decoder_ ? ", " + jpeg_decoder_->description : "",
            options_.deterministic ? ", deterministic" : "",
            plans_.warning().empty() ? "" : "; " + plans_.warning());
    }

    std::int64_t memory_bytes() const override {
        return static_cast<std::int64_t>(properties_.totalGlobalMem);
    }

    std::string uuid() const override {
        std::string text = "GPU";
        for (std::size_t i = 0; i < sizeof properties_.uuid.bytes; ++i) {
            const bool starts_group = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
            text += fmt::format("{}{:02x}", starts_group ? "-" : "",
                                static_cast<unsigned char>(properties_.uuid.bytes[i]));
        }
        return text;
    }

    std::vector<tensor::DType> compute_dtypes() const override {
        return {DType::f16, DType::bf16, DType::f32};
    }

    bool has_tf32() const override { return context_.sm >= 80; }
    int threads() const override { return 1; }

    Determinism determinism() const override {
        if (!options_.deterministic) return {};
        return {true, true,
                fmt::format("cuDNN {} and cuBLAS {} on {}", cudnn_version(),
                            library_version(cublasLtGetVersion()), properties_.name)};
    }

    std::unique_ptr<Memory> allocate(std::size_t bytes) override {
        return std::make_unique<CudaMemory>(bytes, stream_);
    }
    void upload(void* to, std::span<const std::byte> from) override { transfers_.upload(to, from); }
    void download(std::span<std::byte> to, const void* from) override {
        transfers_.download(to, from);
    }
    void enqueue_upload(void* to, std::span<const std::byte> from) override {
        transfers_.enqueue_upload(to, from);
    }
    void enqueue_fresh_upload(void* to, std::span<const std::byte> from) override {
        transfers_.enqueue_fresh_upload(to, from);
    }
    void enqueue_copy(void* to, const void* from, std::size_t bytes) override {
        check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copying");
    }
    void reserve_uploads(std::size_t bytes) override { transfers_.reserve_uploads(bytes); }
    std::size_t storage_bytes(const Shape& shape, DType dtype) const override {
        return device::storage_bytes(is_floating(dtype) ? stored_shape(shape) : shape, dtype);
    }
    void store_channels_last(void* to, const Shape& shape, DType dtype,
                             std::span<const float> values) override {
        store_values(values, {shape, dtype, to}, transfers_, stream_);
    }
    void synchronize() override { check(cudaStreamSynchronize(stream_), "waiting for the device"); }

    bool accepts(const ops::Operation& operation, const KernelOptions& options) override {
        const bool accepted = acceptance_(operation, options);
        plans_.save();  // timing is slow, so its results must survive a later failure
        return accepted;
    }
    KernelPtr build(const ops::Operation& operation, const KernelOptions& options) override {
        ensure(is_floating(options.compute), "the CUDA engine computes in f32, f16 or bf16, not {}",
               name_of(options.compute));
        auto kernel = build_kernel(operation, options, context_);
        plans_.save();
        return kernel;
    }

    std::optional<Tuning> tuning() const override {
        return context_.autotune ? std::optional(tuning_) : std::nullopt;
    }

    std::unique_ptr<Update> build(const Optimizer& optimizer,
                                  const OptimizerTensors& tensors) override {
        return build_update(optimizer, tensors, context_, *this);
    }

    void check_finite(std::span<const float> values, StepScalars* scalars) override {
        const auto count = static_cast<std::int64_t>(values.size());
        kernels::check_finite(values.data(), count, scalars, stream_);
    }
    void add_losses(std::span<const float> losses, StepScalars* scalars) override {
        const auto rows = static_cast<std::int64_t>(losses.size());
        kernels::accumulate_loss(losses.data(), rows, &scalars->loss_sum, stream_);
    }
    void finish_step(const LossScalePolicy& policy, StepScalars* scalars) override {
        kernels::update_loss_scale(policy, scalars, stream_);
    }

    bool can_resize_crops() const override { return true; }
    void resize_crops(const ViewBatch& batch) override { kernels::crop_resize(batch, stream_); }
    std::unique_ptr<JpegBatch> make_jpeg_batch() override {
        if (!jpeg_decoder_) jpeg_decoder_ = open_jpeg_decoder();
        return cuda::make_jpeg_batch(*jpeg_decoder_, stream_, options_.index);
    }

    bool can_record() const override { return true; }
    std::unique_ptr<Recording> record(const std::function<void()>& enqueue) override {
        return record_work(stream_, enqueue);
    }

    std::unique_ptr<Timeline> make_timeline() override {
        return std::make_unique<EventTimeline>(stream_);
    }

    void begin_phase(const char* name) override {
        if (std::exchange(is_in_phase_, name != nullptr)) nvtxRangePop();
        if (name != nullptr) nvtxRangePush(name);
    }

    std::uint64_t hash(std::span<const float> values) override {
        const auto count = static_cast<std::int64_t>(values.size());
        kernels::hash(values.data(), count, static_cast<std::uint64_t*>(hash_.data()), stream_);
        std::uint64_t sum = 0;
        download(std::as_writable_bytes(std::span(&sum, 1)), hash_.data());
        return sum;
    }

    const Context& context() const { return context_; }

private:
    void check_architecture() {
        try {
            kernels::fill(DType::f32, hash_.data(), 0, 2, stream_);  // any kernel serves
            synchronize();
        } catch (const Error& error) {
            throw Error(ExitCode::usage,
                        fmt::format("the CUDA engine does not run on {} (sm_{}); it may be built "
                                    "for other GPUs (CMAKE_CUDA_ARCHITECTURES): {}",
                                    properties_.name, context_.sm, error.what()));
        }
    }

    CudaDeviceOptions options_;
    cudaDeviceProp properties_;  // select_device() must precede members that use the GPU
    OwnedStream stream_;
    Handles handles_;
    PlanCache plans_;
    Transfers transfers_;
    DeviceBytes hash_;
    bool is_in_phase_ = false;  // an NVTX range is open
    Tuning tuning_;
    Context context_;
    Acceptance acceptance_{context_};
    std::optional<JpegDecoder> jpeg_decoder_;
};

}  // namespace

int device_count() {
    int count = 0;
    const cudaError_t status = cudaGetDeviceCount(&count);
    if (status == cudaErrorNoDevice) return 0;
    require(status == cudaSuccess, ExitCode::usage, "no GPU can be used: {} ({})",
            cudaGetErrorString(status), cudaGetErrorName(status));
    return count;
}

std::unique_ptr<Device> make_cuda_device(const CudaDeviceOptions& options) {
    return std::make_unique<CudaDevice>(options);
}

std::unique_ptr<Recording> record_work(cudaStream_t stream, const std::function<void()>& enqueue) {
    return std::make_unique<GraphRecording>(stream, enqueue);
}

const Context& context_of(Device& device) {
    const auto* cuda = dynamic_cast<const CudaDevice*>(&device);
    ensure(cuda != nullptr, "{} is not a device of the CUDA engine", device.description());
    return cuda->context();
}

}  // namespace hpcai::device::cuda
