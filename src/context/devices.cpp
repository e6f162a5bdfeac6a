// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <hpcai/base/error.hpp>
#include <hpcai/base/text.hpp>
#include <hpcai/context/devices.hpp>
#include <hpcai/device/cuda_library.hpp>

namespace hpcai::context {
namespace {

/// A value of training.precision other than auto.
struct PrecisionRow {
    config::Precision name;
    device::Precision precision;
    std::string_view hint;  // end of an error message: devices that support it; "": all do
};
constexpr std::array kPrecisions{
    PrecisionRow{config::Precision::fp32, {}, ""},
    PrecisionRow{
        config::Precision::tf32, {.tf32 = true}, "; GPUs since compute capability 8.0 support it"},
    PrecisionRow{config::Precision::mixed, {.compute = tensor::DType::f16}, "; GPUs support it"},
    PrecisionRow{config::Precision::fp16,
                 {.compute = tensor::DType::f16, .is_pure = true},
                 "; GPUs support it"},
    PrecisionRow{config::Precision::bf16,
                 {.compute = tensor::DType::bf16},
                 "; GPUs and CPUs with AVX-512 BF16 support it"},
    PrecisionRow{config::Precision::int8, {.int8 = true}, "; CPUs with AVX-512 VNNI support it"},
};

std::unique_ptr<device::Device> open_cpu(const config::Config& config, const device::Cores& cores,
                                         int ranks_sharing) {
    device::CpuDeviceOptions options;
    options.threads = device::threads_for_rank(config.device.threads, cores, ranks_sharing);
    options.deterministic = config.run.deterministic;
    if (config.device.layout != config::ActivationLayout::automatic) {
        const bool is_blocked = config.device.layout == config::ActivationLayout::blocked;
        options.layout = is_blocked ? device::CpuLayout::blocked : device::CpuLayout::channels_last;
    }
    return device::make_cpu_device(options);
}

std::unique_ptr<device::Device> open_gpu(const config::Config& config, const PlaceOnNode& place) {
    const auto library = device::CudaLibrary::open();
    const int devices = library->device_count();
    require(devices > 0, ExitCode::launch, "this node has a CUDA driver but no GPU");
    auto device = library->make_device({.index = place.local_rank % devices,
                                        .deterministic = config.run.deterministic,
                                        .autotune = config.device.autotune,
                                        .plan_cache = config.device.plan_cache});
    // Opens the decoder, so that the device's description names it.
    if (config.data.decoder == config::Decoder::gpu) device->make_jpeg_batch();
    return device;
}

}  // namespace

OpenDevice open_device(const config::Config& config, const device::Cores& cores,
                       const PlaceOnNode& place) {
    const bool needs_gpu = config.device.kind == config::DeviceKind::cuda;
    const bool may_use_gpu =
        config.device.kind == config::DeviceKind::automatic && device::CudaLibrary::has_driver();
    std::string note;
    try {
        if (needs_gpu || may_use_gpu) return {open_gpu(config, place), ""};
    } catch (const Error& error) {
        if (needs_gpu) throw Error(error.code(), fmt::format("device.kind: {}", error.what()));
        note = fmt::format("no GPU is used: {}", error.what());
    }
    return {open_cpu(config, cores, place.ranks_sharing_cores), note};
}

std::string describe_gpu_sharing(std::span<const RankFacts> by_world_rank) {
    std::map<std::string_view, std::size_t> first_ranks;
    for (std::size_t rank = 0; rank < by_world_rank.size(); ++rank) {
        const std::string& uuid = by_world_rank[rank].device_uuid;
        if (uuid.empty()) continue;
        const auto [first, is_new] = first_ranks.emplace(uuid, rank);
        if (!is_new) return fmt::format("ranks {} and {} share {}", first->second, rank, uuid);
    }
    return {};
}

void check_devices(std::span<const RankFacts> by_world_rank, config::Level level) {
    const auto other = std::ranges::find_if(by_world_rank, [&](const RankFacts& rank) {
        return rank.device_uuid.empty() != by_world_rank.front().device_uuid.empty();
    });
    require(other == by_world_rank.end(), ExitCode::launch,
            "device.kind: expected cpu, or a GPU for every rank; rank 0 has {}, rank {} has {}",
            by_world_rank.front().device, other - by_world_rank.begin(),
            other == by_world_rank.end() ? "" : other->device);
    const std::string sharing = describe_gpu_sharing(by_world_rank);
    require(sharing.empty() || level == config::Level::custom, ExitCode::launch,
            "{}: every rank needs its own GPU unless run.level is custom; start fewer ranks on a "
            "node, or make a separate GPU visible to each rank",
            sharing);
}

DeviceFormats formats_of(const device::Device& device) {
    return {device.compute_dtypes(), device.has_tf32(), device.has_int8(), !device.uuid().empty()};
}

std::vector<device::Precision> available_precisions(const DeviceFormats& formats) {
    std::vector<device::Precision> available;
    for (const tensor::DType compute : formats.dtypes) {
        if (compute == tensor::DType::f32 && formats.has_tf32) available.push_back({compute, true});
        available.push_back({compute, false});
        if (compute == tensor::DType::f16)
            available.push_back({.compute = compute, .is_pure = true});
    }
    if (formats.has_int8) available.push_back({.int8 = true});
    return available;
}

device::Precision precision_named(std::string_view name) {
    for (const PrecisionRow& row : kPrecisions) {
        if (name_of(row.precision) == name) return row.precision;
    }
    throw Error(ExitCode::data,
                fmt::format("precision: expected fp32, tf32, mixed, fp16, bf16 or int8, got '{}'",
                            printable(name)));
}

device::Precision choose_precision(config::Precision requested, const DeviceFormats& formats) {
    const std::vector<device::Precision> available = available_precisions(formats);
    if (requested == config::Precision::automatic) return available.front();
    const PrecisionRow& row = *std::ranges::find(kPrecisions, requested, &PrecisionRow::name);
    const auto found = std::ranges::find(available, row.precision);
    std::vector<std::string_view> names;
    for (const device::Precision& precision : available) names.push_back(name_of(precision));
    require(found != available.end(), ExitCode::usage,
            "training.precision: expected auto or a precision of {} ({}), got '{}'{}",
            formats.is_gpu ? "this GPU" : "this CPU", fmt::join(names, ", "),
            name_of(row.precision), row.hint);
    return *found;
}

}  // namespace hpcai::context
