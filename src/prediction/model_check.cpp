// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <hpcai/base/units.hpp>
#include <hpcai/graph/shard.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/prediction/estimate.hpp>

namespace hpcai::prediction {
namespace {

/// Rejects a BatchNorm over one value: it equals its mean, so its gradient is 0.
void check_statistics(const config::Config& config, const plan::Layout& layout,
                      const graph::Graph& model) {
    const int rows = layout.micro_batch_size(config.training.batch_size);
    const std::optional<int>& samples = config.training.batch_norm_samples;
    if (samples.value_or(rows) > 1) return;
    for (const graph::Node& node : model.nodes()) {
        const auto* norm = std::get_if<ops::BatchNorm>(&node.operation);
        if (norm == nullptr || norm->frozen) continue;
        require(norm->input[1] * norm->input[2] > 1, ExitCode::usage,
                "training.batch_norm_samples: expected 2 or more, got {}: {} normalizes images of "
                "1 x 1 pixels, and one sample has no variance; or use larger images{}",
                samples ? "1" : "auto, the 1 sample that a rank computes at once", node.name,
                samples ? "" : " or a larger training.batch_size");
    }
}

bool has_int8(const graph::Stage& shard) {
    return std::ranges::any_of(shard.graph.nodes(), [](const graph::Node& node) {
        const auto* convolution = std::get_if<ops::Convolution>(&node.operation);
        return convolution != nullptr && ops::computes_in_int8(*convolution, ops::Pass::forward);
    });
}

void check_partition(const config::Config& config, const plan::Layout& layout,
                     const graph::Graph& model) {
    if (layout.partitions() == 1) return;
    const auto shards = graph::partition_stages(config.training.fusion ? graph::fuse(model) : model,
                                                layout.stages, layout.shards);
    require(config.training.precision != config::Precision::int8 ||
                std::ranges::any_of(shards, has_int8),
            ExitCode::usage,
            "parallel.model_degree: expected a power of two, as training.precision int8 needs "
            "convolutions with multiples of 16 channels and {} x {} have none, got {}{}",
            counted(layout.stages, "stage"), counted(layout.shards, "shard"), layout.shards,
            config.parallel.model_degree ? "" : " (auto)");
}

}  // namespace

void check_model(const config::Config& config, const plan::Layout& layout) {
    require(layout.shards == 1 || config.device.kind != config::DeviceKind::cuda, ExitCode::usage,
            "parallel.model_degree: expected 1, as device.kind cuda does not support shards of "
            "layers yet, got {}{}; use parallel.mode data or pipeline, or device.kind cpu",
            layout.shards, config.parallel.model_degree ? "" : " (auto)");
    const bool is_nccl = config.communication.backend == config::CommunicationBackend::nccl;
    require(!is_nccl || plan::statistics_ranks(config.training, layout) == 1, ExitCode::usage,
            "communication.backend: expected auto or mpi, as training.batch_norm_samples spans "
            "ranks, which synchronize through the host, got 'nccl'");
    const graph::Graph model = models::make_model(config);
    check_statistics(config, layout, model);
    check_partition(config, layout, model);
}

}  // namespace hpcai::prediction
