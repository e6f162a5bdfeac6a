// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

#include <fmt/core.h>
#include <omp.h>

#include <hpcai/base/error.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "context.hpp"

namespace hpcai::device {
namespace {

using namespace cpu;

class HostMemory final : public Memory {
public:
    explicit HostMemory(std::size_t bytes) : bytes_(bytes) {
        // std::aligned_alloc requires a multiple of the alignment.
        data_.reset(
            std::aligned_alloc(kAlignment, std::max(kAlignment, align_up(bytes, kAlignment))));
        require(data_ != nullptr, ExitCode::internal, "cannot allocate {} MiB of host memory; {}",
                bytes >> 20, kMemoryRemedy);
        std::memset(data_.get(), 0, bytes);
    }

    void* data() override { return data_.get(); }
    std::size_t bytes() const override { return bytes_; }

private:
    static constexpr std::size_t kAlignment = std::size_t{1} << 21;  // Linux may use huge pages
    std::size_t bytes_;
    std::unique_ptr<void, decltype(&std::free)> data_{nullptr, &std::free};
};

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

class CpuDevice final : public Device {
public:
    explicit CpuDevice(const CpuDeviceOptions& options) : threads_(options.threads) {
        ensure(dnnl::engine::get_count(dnnl::engine::kind::cpu) > 0, "oneDNN has no CPU engine");
        // oneDNN and the engine's loops use OpenMP's number of threads, which must not vary.
        omp_set_dynamic(0);
        context_.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
        context_.stream = dnnl::stream(context_.engine);
        context_.loops = &loops_for_this_cpu();
        context_.is_deterministic = options.deterministic;
        // Layouts of a deterministic device must not depend on the number of threads.
        omp_set_num_threads(options.deterministic ? 1 : threads_);
        context_.layouts = choose_layouts(context_.engine, options.layout);
        omp_set_num_threads(threads_);
    }

    std::string description() const override {
        return fmt::format(
            "{} thread{} of {}, oneDNN {}, {}{}", threads_, threads_ == 1 ? "" : "s",
            processor_name(), onednn_version(),
            context_.layouts.channel_block > 0
                ? fmt::format("channels in blocks of {}", context_.layouts.channel_block)
                : "channels last",
            context_.is_deterministic ? ", deterministic" : "");
    }

    std::vector<tensor::DType> compute_dtypes() const override {
        if (has_native_bf16()) return {tensor::DType::bf16, tensor::DType::f32};
        return {tensor::DType::f32};
    }

    bool has_int8() const override { return has_native_int8(); }
    bool supports_shards() const override { return true; }

    int threads() const override { return threads_; }

    Determinism determinism() const override {
        if (!context_.is_deterministic) return {};
        return {true, true, fmt::format("oneDNN {} on {}", onednn_version(), processor_name())};
    }

    std::unique_ptr<Memory> allocate(std::size_t bytes) override {
        return std::make_unique<HostMemory>(bytes);
    }
    void upload(void* to, std::span<const std::byte> from) override {
        if (!from.empty()) std::memcpy(to, from.data(), from.size());
    }
    void download(std::span<std::byte> to, const void* from) override {
        if (!to.empty()) std::memcpy(to.data(), from, to.size());
    }
    void enqueue_upload(void* to, std::span<const std::byte> from) override { upload(to, from); }
    void enqueue_copy(void* to, const void* from, std::size_t bytes) override {
        if (bytes > 0) std::memcpy(to, from, bytes);
    }
    void store_channels_last(void* to, const tensor::Shape& shape, tensor::DType dtype,
                             std::span<const float> values) override {
        ensure(values.size() == static_cast<std::size_t>(shape.elements()),
               "{} values do not match shape {}", values.size(), to_string(shape));
        ensure(dtype == tensor::DType::f32 || dtype == tensor::DType::bf16,
               "the CPU engine does not support values of type {}", name_of(dtype));
        dnnl::memory host(value_desc(Layouts{0, false}, shape, tensor::DType::f32), context_.engine,
                          const_cast<float*>(values.data()));
        dnnl::memory stored(value_desc(context_.layouts, shape, dtype), context_.engine, to);
        dnnl::reorder(host, stored).execute(context_.stream, host, stored);
        synchronize();
    }
    void synchronize() override { context_.stream.wait(); }

    KernelPtr build(const ops::Operation& operation, const KernelOptions& options) override {
        try {
            return build_kernel(operation, options, context_);
        } catch (const dnnl::error& error) {
            throw Error(ExitCode::internal,
                        fmt::format("oneDNN cannot build {} in {}: {}", ops::name_of(operation),
                                    name_of(options.compute), error.what()));
        }
    }

    std::unique_ptr<Update> build(const Optimizer& optimizer,
                                  const OptimizerTensors& tensors) override {
        return build_update(optimizer, tensors, context_);
    }

    void check_finite(std::span<const float> values, StepScalars* scalars) override {
        const auto count = static_cast<std::int64_t>(values.size());
        bool all = true;
#pragma omp parallel for schedule(static) reduction(&& : all)
        for (std::int64_t i = 0; i < count; ++i) all = all && std::isfinite(values[i]);
        if (!all) scalars->finite = 0;
    }
    void add_losses(std::span<const float> losses, StepScalars* scalars) override {
        scalars->loss_sum += std::accumulate(losses.begin(), losses.end(), 0.0);
    }
    void finish_step(const LossScalePolicy& policy, StepScalars* scalars) override {
        const bool good = scalars->finite != 0;
        scalars->good_steps = good ? scalars->good_steps + 1 : 0;
        scalars->skipped_steps += good ? 0 : 1;
        scalars->taken_steps += good ? 1 : 0;
        if (policy.dynamic && !good) {
            scalars->loss_scale = std::max(scalars->loss_scale / 2, policy.min_scale);
        } else if (policy.dynamic && scalars->good_steps >= policy.good_steps_to_double) {
            scalars->good_steps = 0;
            if (scalars->loss_scale * 2 <= policy.max_scale) scalars->loss_scale *= 2;
        }
        scalars->gradient_factor = policy.loss_weight / scalars->loss_scale;
        scalars->finite = 1;
    }

    std::uint64_t hash(std::span<const float> values) override {
        synchronize();
        return hash_bits(values, *context_.loops);
    }

private:
    int threads_;
    Context context_;
};

}  // namespace

std::uint64_t cpu::hash_bits(std::span<const float> values, const SimdKernels& loops) {
    constexpr std::int64_t kPart = 1 << 14;  // words
    const auto words = static_cast<std::int64_t>(values.size() / 2);
    const std::int64_t parts = ceil_div(words, kPart);
    std::uint64_t sum = values.size();
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (std::int64_t part = 0; part < parts; ++part) {
        const std::int64_t first = part * kPart;
        sum += loops.hash_words(values.data() + 2 * first, std::min(kPart, words - first), first);
    }
    if (values.size() % 2 != 0) {
        const std::array<float, 2> last{values.back(), 0};
        sum += loops.hash_words(last.data(), 1, words);
    }
    return sum;
}

std::string onednn_version() {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options) {
    return std::make_unique<CpuDevice>(options);
}

}  // namespace hpcai::device
