// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>

#include <fmt/core.h>
#include <hwloc.h>
#include <omp.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/rounding.hpp>
#include <hpcai/device/cpu_device.hpp>

#include "context.hpp"
#include "hash.hpp"
#include "isa.hpp"
#include "optimizer.hpp"
#include "update.hpp"

namespace hpcai::device {
namespace {

using namespace cpu;

class HostMemory final : public Memory {
public:
    // Rounded up, because std::aligned_alloc wants a multiple; 2 MiB lets the kernel use huge
    // pages.
    explicit HostMemory(std::size_t bytes)
        : bytes_(bytes), data_(std::aligned_alloc(kAlignment, round_up(bytes))) {
        ensure(data_ != nullptr, "no memory for {} bytes", bytes);
        std::memset(data_, 0, bytes);
    }
    ~HostMemory() override { std::free(data_); }
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;

    void* data() override { return data_; }
    std::size_t bytes() const override { return bytes_; }

private:
    static constexpr std::size_t kAlignment = std::size_t{1} << 21;
    static std::size_t round_up(std::size_t bytes) {
        return std::max(kAlignment, align_up(bytes, kAlignment));
    }
    std::size_t bytes_;
    void* data_;
};

std::string processor_name() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

std::string onednn_version() {
    const dnnl_version_t* version = dnnl_version();
    return fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
}

class CpuDevice final : public Device {
public:
    explicit CpuDevice(const CpuDeviceOptions& options) : threads_(options.threads) {
        ensure(dnnl::engine::get_count(dnnl::engine::kind::cpu) > 0, "oneDNN has no CPU engine");
        // oneDNN and the engine's loops both take the number of threads from OpenMP.
        omp_set_dynamic(0);
        context_.engine = dnnl::engine(dnnl::engine::kind::cpu, 0);
        context_.stream = dnnl::stream(context_.engine);
        context_.loops = &loops_for_this_cpu();
        context_.is_deterministic = options.deterministic;
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
        if (multiplies_bf16()) return {tensor::DType::bf16, tensor::DType::f32};
        return {tensor::DType::f32};
    }

    bool has_int8() const override { return multiplies_int8(); }
    bool computes_parts() const override { return true; }

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
        convert(host_desc(shape, values.size()), const_cast<float*>(values.data()),
                device_desc(shape, dtype), to);
    }
    void load_channels_last(std::span<float> values, const tensor::Shape& shape,
                            tensor::DType dtype, const void* from) override {
        convert(device_desc(shape, dtype), const_cast<void*>(from), host_desc(shape, values.size()),
                values.data());
    }
    void synchronize() override { context_.stream.wait(); }

    std::unique_ptr<Kernel> build(const ops::Operation& operation,
                                  const KernelOptions& options) override {
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

    void check_finite(std::span<const float> values, StepScalars* numbers) override {
        cpu::check_finite(values, *numbers);
    }
    void add_losses(std::span<const float> losses, StepScalars* numbers) override {
        numbers->loss_sum += std::accumulate(losses.begin(), losses.end(), 0.0);
    }
    void finish_step(const LossScalePolicy& policy, StepScalars* numbers) override {
        cpu::finish_step(policy, *numbers);
    }

    std::uint64_t hash(std::span<const float> values) override {
        synchronize();
        return hash_of_bits(values, *context_.loops);
    }

private:
    static dnnl::memory::desc host_desc(const tensor::Shape& shape, std::size_t elements) {
        ensure(elements == static_cast<std::size_t>(shape.elements()), "{} values for shape {}",
               elements, to_string(shape));
        return value_desc(Layouts{0, false}, shape, tensor::DType::f32);
    }

    dnnl::memory::desc device_desc(const tensor::Shape& shape, tensor::DType dtype) const {
        ensure(dtype == tensor::DType::f32 || dtype == tensor::DType::bf16,
               "the CPU engine keeps no values in {}", name_of(dtype));
        return value_desc(context_.layouts, shape, dtype);
    }

    void convert(const dnnl::memory::desc& from, void* source, const dnnl::memory::desc& to,
                 void* target) {
        dnnl::memory source_memory(from, context_.engine, source);
        dnnl::memory target_memory(to, context_.engine, target);
        dnnl::reorder(source_memory, target_memory)
            .execute(context_.stream, source_memory, target_memory);
        context_.stream.wait();
    }

    int threads_;
    Context context_;
};

}  // namespace

std::unique_ptr<Device> make_cpu_device(const CpuDeviceOptions& options) {
    return std::make_unique<CpuDevice>(options);
}

namespace {

/// FNV-1a of the set's text form.
std::uint64_t hash_of(hwloc_const_bitmap_t set) {
    char* text = nullptr;
    hwloc_bitmap_asprintf(&text, set);
    std::uint64_t hash = 14695981039346656037ULL;
    for (const char* at = text; at != nullptr && *at != 0; ++at) {
        hash = (hash ^ static_cast<unsigned char>(*at)) * 1099511628211ULL;
    }
    std::free(text);
    return hash;
}

}  // namespace

Cores count_cores() {
    Cores cores;
    hwloc_topology_t topology = nullptr;
    if (hwloc_topology_init(&topology) != 0) return cores;
    if (hwloc_topology_load(topology) == 0) {
        cores.machine = std::max(hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE), 1);
        cores.allowed = cores.machine;
        hwloc_bitmap_t bound = hwloc_bitmap_alloc();
        if (hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_PROCESS) == 0) {
            const int inside =
                hwloc_get_nbobjs_inside_cpuset_by_type(topology, bound, HWLOC_OBJ_CORE);
            cores.allowed = std::clamp(inside, 1, cores.machine);
            cores.allowed_set = hash_of(bound);
        }
        hwloc_bitmap_free(bound);
    }
    hwloc_topology_destroy(topology);
    return cores;
}

int threads_for_rank(int wanted, const Cores& cores, int ranks_sharing) {
    if (wanted > 0) return wanted;
    return std::max(1, cores.allowed / std::max(1, ranks_sharing));
}

}  // namespace hpcai::device
