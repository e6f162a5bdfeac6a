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

device::Precision requested(config::Precision wanted) {
    switch (wanted) {
        case config::Precision::tf32:
            return {tensor::DType::f32, true};
        case config::Precision::mixed:
            return {.compute = tensor::DType::f16};
        case config::Precision::fp16:
            return {.compute = tensor::DType::f16, .is_pure = true};
        case config::Precision::bf16:
            return {tensor::DType::bf16, false};
        case config::Precision::int8:
            return {.int8 = true};
        case config::Precision::fp32:
        case config::Precision::automatic:
            break;
    }
    return {};
}

/// Returns which devices have a precision that this rank's device lacks.
std::string_view who_has(config::Precision wanted) {
    struct Row {
        config::Precision precision;
        std::string_view who;
    };
    constexpr std::array kRows{
        Row{config::Precision::tf32, "; GPUs from compute capability 8.0 on have it"},
        Row{config::Precision::fp16, "; GPUs have it"},
        Row{config::Precision::mixed, "; GPUs have it"},
        Row{config::Precision::bf16, "; GPUs have it, and CPUs with AVX-512 BF16"},
        Row{config::Precision::int8, "; CPUs with AVX-512 VNNI have it"},
    };
    const auto* found = std::ranges::find(kRows, wanted, &Row::precision);
    return found == kRows.end() ? "" : found->who;
}

std::unique_ptr<device::Device> open_cpu(const config::Config& config, const device::Cores& cores,
                                         int ranks_sharing) {
    device::CpuDeviceOptions options;
    options.threads = device::threads_for_rank(config.device.threads, cores, ranks_sharing);
    options.deterministic = config.run.deterministic;
    switch (config.device.layout) {
        case config::ActivationLayout::automatic:
            break;
        case config::ActivationLayout::blocked:
            options.layout = device::CpuLayout::blocked;
            break;
        case config::ActivationLayout::channels_last:
            options.layout = device::CpuLayout::channels_last;
            break;
    }
    return device::make_cpu_device(options);
}

std::unique_ptr<device::Device> open_gpu(const config::Config& config, const PlaceOnNode& place) {
    const auto library = device::CudaLibrary::open();
    const int devices = library->device_count();
    require(devices > 0, ExitCode::launch, "this node has a driver and no GPU");
    return library->make_device({.index = place.local_rank % devices,
                                 .deterministic = config.run.deterministic,
                                 .autotune = config.device.autotune,
                                 .plan_cache = config.device.plan_cache});
}

}  // namespace

OpenDevice open_device(const config::Config& config, const device::Cores& cores,
                       const PlaceOnNode& place) {
    const bool is_wanted = config.device.kind == config::DeviceKind::cuda;
    const bool may_be =
        config.device.kind == config::DeviceKind::automatic && device::CudaLibrary::has_driver();
    std::string why_not;
    try {
        if (is_wanted || may_be) return {open_gpu(config, place), ""};
    } catch (const Error& error) {
        if (is_wanted) throw Error(error.code(), fmt::format("device.kind: {}", error.what()));
        why_not = fmt::format("; no GPU is used: {}", error.what());
    }
    return {open_cpu(config, cores, place.ranks_sharing_cores), why_not};
}

std::string describe_sharing(std::span<const RankFacts> by_world_rank) {
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
    const std::string sharing = describe_sharing(by_world_rank);
    require(sharing.empty() || level == config::Level::custom, ExitCode::launch,
            "{}: at a run.level other than custom every rank has a GPU of its own; start fewer "
            "ranks on a node, or let each see its own GPUs",
            sharing);
}

std::vector<device::Precision> available_precisions(const device::Device& device) {
    std::vector<device::Precision> available;
    for (const tensor::DType compute : device.compute_dtypes()) {
        if (compute == tensor::DType::f32 && device.has_tf32())
            available.push_back({compute, true});
        available.push_back({compute, false});
        if (compute == tensor::DType::f16)
            available.push_back({.compute = compute, .is_pure = true});
    }
    if (device.has_int8()) available.push_back({.int8 = true});
    return available;
}

device::Precision precision_named(std::string_view name) {
    using enum config::Precision;
    for (const config::Precision one : {fp32, tf32, mixed, fp16, bf16, int8}) {
        const device::Precision precision = requested(one);
        if (name_of(precision) == name) return precision;
    }
    throw Error(ExitCode::data,
                fmt::format("precision: expected one to compute in, got '{}'", printable(name)));
}

device::Precision choose_precision(config::Precision wanted, const device::Device& device) {
    const std::vector<device::Precision> available = available_precisions(device);
    if (wanted == config::Precision::automatic) return available.front();
    const auto found = std::ranges::find(available, requested(wanted));
    std::vector<std::string_view> names;
    for (const device::Precision& one : available) names.push_back(name_of(one));
    require(found != available.end(), ExitCode::usage,
            "training.precision: expected auto or what {} computes in ({}), got '{}'{}",
            device.uuid().empty() ? "this CPU" : "this GPU", fmt::join(names, ", "),
            name_of(requested(wanted)), who_has(wanted));
    return *found;
}

}  // namespace hpcai::context
