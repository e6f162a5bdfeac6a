// SPDX-License-Identifier: Apache-2.0
#include <hpcai/config/reader.hpp>
#include <hpcai/data/resident_pictures.hpp>
#include <hpcai/graph/fuse_for_device.hpp>
#include <hpcai/graph/shard.hpp>
#include <hpcai/group/model.hpp>
#include <hpcai/models/make_model.hpp>
#include <hpcai/plan/pipeline.hpp>
#include <hpcai/tensor/half.hpp>
#include <hpcai/training/initialize.hpp>
#include <hpcai/training/stage_parameters.hpp>
#include <hpcai/training/weights_file.hpp>

namespace hpcai::group {

/// The shards of all stages of a model. Each rank trains one shard of one stage.
struct Partition {
    Partition(const graph::Graph& model, const config::TrainingConfig& training,
              const plan::Layout& group_layout, int group_rank)
        : layout(group_layout),
          stages(graph::partition_stages(training.fusion ? graph::fuse(model) : model,
                                         layout.stages, layout.shards)),
          mine(stages[layout.partition_of(group_rank)]) {
        if (layout.shards == 1) return;
        exchange = std::make_unique<comm::TensorParallelExchange>(
            layout.shards, layout.model_shard_of(group_rank));
    }

    plan::Layout layout;
    std::vector<graph::Stage> stages;                        // [Layout::partition_of()]
    const graph::Stage& mine;                                // this rank's stage and shard
    std::unique_ptr<comm::TensorParallelExchange> exchange;  // null: one shard
};

namespace {

/// Makes the decoder of data.decoder, or reserves the device memory of data.resident_mib. Returns
/// null if neither is configured, or if the device has no decoder. Throws Error(usage) if the
/// memory does not suffice.
std::unique_ptr<data::DevicePictures> make_device_pictures(const context::RunContext& context,
                                                           const context::Resources& resources) {
    // GPU memory that images leave free for buffers of all-reduces, for kernels that load at
    // their first use, and for the CUDA graph of the step.
    constexpr std::size_t kSpareBytes = std::size_t{1} << 30;
    const config::Config& config = context.config;
    device::Device& device = *resources.device;
    const std::int64_t rows =
        context.controller.layout().micro_batch_size(config.training.batch_size);
    if (config.data.decoder == config::Decoder::gpu) {
        if (device.make_jpeg_batch() == nullptr) return nullptr;
        return std::make_unique<data::DecodedPictures>(device, rows);
    }
    if (config.data.resident_mib == 0) return nullptr;
    return std::make_unique<data::ResidentPictures>(
        device, data::ResidentPictures::MemoryBudget{
                    static_cast<std::size_t>(config.data.resident_mib) << 20, rows, kSpareBytes});
}

/// Rounds the initial weights for training without fp32 master weights. The first step would
/// otherwise start from weights that fp16 cannot store.
void round_to_f16(graph::ParameterStore& store) {
    std::vector<float> values = store.read(store.parameters());
    for (float& value : values) value = tensor::from_f16(tensor::to_f16(value));
    store.write(values, store.parameters());
}

}  // namespace

graph::Graph make_training_graph(const context::RunContext& context, const data::SampleSet& samples,
                                 const Edits& edits) {
    const config::TrainingConfig& training = context.config.training;
    const int rows = context.controller.layout().micro_batch_size(training.batch_size);
    return morphs::apply_all(
        models::make_model(context.config, {rows, training.batch_norm_samples.value_or(rows),
                                            samples.format().dtype}),
        edits);
}

Model::Model(graph::Graph graph, const context::RunContext& context,
             const context::Resources& resources, Edits edits, bool has_networks)
    : device_(*resources.device),
      number_(static_cast<std::uint32_t>(context.place.group)),
      graph_(std::move(graph)),
      edits_(std::move(edits)),
      is_pure_(resources.precision.is_pure),
      sync_batch_norm_group_(
          plan::statistics_ranks(context.config.training, context.controller.layout())) {
    const config::TrainingConfig& training = context.config.training;
    const plan::Layout& layout = context.controller.layout();
    const int states = config::optimizer_states(training.optimizer);
    const bool is_partitioned = layout.partitions() > 1;
    store_ = std::make_unique<graph::ParameterStore>(graph_, device_, is_partitioned ? 0 : states);
    training::initialize(graph_, context.config.run.seed, number_, *store_);
    if (!training.initial_weights.empty()) {
        config::name_key("training.initial_weights", [&] {
            training::read_initial_weights(training.initial_weights, graph_, *store_);
        });
    }
    if (is_pure_) round_to_f16(*store_);
    if (is_partitioned) {
        partition_ =
            std::make_unique<Partition>(graph_, training, layout, context.place.group_rank);
        auto mine =
            std::make_unique<graph::ParameterStore>(partition_->mine.graph, device_, states);
        training::copy_stage(partition_->mine, *store_, *mine);
        store_ = std::move(mine);
    }
    if (has_networks) build_networks(context, resources);
}

Model::~Model() = default;

void Model::build_networks(const context::RunContext& context,
                           const context::Resources& resources) {
    const config::Config& config = context.config;
    const plan::Layout& layout = context.controller.layout();
    const graph::Graph& graph = partition_ ? partition_->mine.graph : graph_;
    const graph::NetworkOptions options{
        .compute = resources.precision.compute,
        .tf32 = resources.precision.tf32,
        .int8 = resources.precision.int8,
        .rounding = {.seed = config.run.seed,
                     .model = number_,
                     .rank = static_cast<std::uint32_t>(context.place.group_rank)},
        .sync_batch_norm_reducer = &sync_batch_norm_group_,
        .exchange = exchange()};
    networks_.push_back(std::make_unique<graph::Network>(
        config.training.fusion ? graph::fuse_for_device(graph, device_, options) : graph, device_,
        *store_, options));
    const int in_flight = plan::micro_batches_in_flight(
        plan::pipeline_tasks(config.parallel.schedule, layout.stages,
                             layout.stage_of(context.place.group_rank), layout.micro_batches));
    while (static_cast<int>(networks_.size()) < in_flight) {
        networks_.push_back(std::make_unique<graph::Network>(*networks_.front(), *store_));
    }
}

std::vector<graph::Network*> Model::networks() const {
    std::vector<graph::Network*> networks;
    for (const auto& network : networks_) networks.push_back(network.get());
    return networks;
}

comm::TensorParallelExchange* Model::exchange() {
    return partition_ ? partition_->exchange.get() : nullptr;
}

std::unique_ptr<graph::ParameterStore> Model::gather_parameters(comm::Communicator& group) {
    if (!partition_) return nullptr;
    auto model = std::make_unique<graph::ParameterStore>(graph_, device_, 0);
    training::all_gather_stages(group, partition_->layout, partition_->stages, *store_, *model);
    return model;
}

void Model::collect(comm::Communicator& group) {
    if (auto parameters = gather_parameters(group)) store_ = std::move(parameters);
}

void Model::load(const std::filesystem::path& weights) {
    drop_networks();
    auto parameters = std::make_unique<graph::ParameterStore>(graph_, device_, 0);
    training::read_weights(weights, graph_, *parameters);
    store_ = std::move(parameters);
}

void Model::write_initial(const morphs::Weights& weights) {
    morphs::write_weights(weights, graph_, *store_);
    if (is_pure_) round_to_f16(*store_);
}

TrainingState::TrainingState(const context::RunContext& context,
                             const context::Resources& resources)
    : model(std::in_place, make_training_graph(context, *resources.samples.training), context,
            resources),
      device_pictures(make_device_pictures(context, resources)) {}

void TrainingState::replace_model(const context::RunContext& context,
                                  const context::Resources& resources, Edits edits) {
    model.reset();
    graph::Graph graph = make_training_graph(context, *resources.samples.training, edits);
    model.emplace(std::move(graph), context, resources, std::move(edits));
}

void TrainingState::load_model(const context::RunContext& context,
                               const context::Resources& resources, Edits edits,
                               const std::filesystem::path& weights) {
    model.reset();
    graph::Graph graph = make_training_graph(context, *resources.samples.training, edits);
    model.emplace(std::move(graph), context, resources, std::move(edits), false);
    model->load(weights);
}

void TrainingState::free_training_memory() {
    model->drop_networks();
    device_pictures.reset();
}

}  // namespace hpcai::group
